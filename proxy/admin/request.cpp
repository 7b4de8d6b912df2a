#include "proxy/admin/request.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr std::size_t kMaxParameters = 16;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

bool read_query(std::string_view text, AdminRequest& request) {
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == kMaxParameters) return false;
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    std::string raw(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
    std::replace(raw.begin(), raw.end(), '+', ' ');
    auto value = percent_decode(raw);
    if (!value) return false;
    request.query.insert_or_assign(std::string(pair.substr(0, equals)), std::move(*value));
  }
  return true;
}

bool accepts_stream(std::string_view accept) {
  bool found = false;
  for_each_element(accept, [&](std::string_view element) {
    found |= equals_ignoring_case(trim(element.substr(0, element.find(';'))), "text/event-stream");
  });
  return found;
}

void take_field(const Field& field, AdminRequest& request) {
  const auto is = [&](std::string_view name) { return equals_ignoring_case(field.name, name); };
  if (field.id == FieldName::host) {
    request.host = field.value;
    ++request.host_fields;
  } else if (field.id == FieldName::accept) {
    request.wants_stream |= accepts_stream(field.value);
  } else if (field.id == FieldName::content_type) {
    request.content_type = lower(trim(field.value.substr(0, field.value.find(';'))));
  } else if (is("origin")) {
    request.origin = field.value;
  } else if (is("sec-fetch-site")) {
    request.fetch_site = lower(field.value);
  } else if (is("authorization")) {
    request.authorization = field.value;
  } else if (is("last-event-id")) {
    request.last_event_id = field.value;
  }
}

}  // namespace

std::string_view AdminRequest::parameter(std::string_view name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    const int byte = high * 16 + low;
    if (high < 0 || low < 0 || byte < 0x20 || byte == 0x7f) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    const auto byte = static_cast<unsigned char>(c);
    if (plain) {
      out += c;
    } else {
      out += {'%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
    }
  }
  return out;
}

Result<AdminRequest> admin_request(const Head& head) {
  AdminRequest request;
  request.method = head.method;
  if (!head.target.starts_with('/'))
    return Error{"this is Sluice's admin side, not its proxy port"};
  const std::size_t question = head.target.find('?');
  request.path = head.target.substr(0, question);
  if (question != std::string_view::npos && !read_query(head.target.substr(question + 1), request))
    return Error{"the query cannot be read"};
  for (const Field& field : head.fields) take_field(field, request);
  return request;
}

}  // namespace sluice
