#include "proxy/http/rewrite.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

namespace sluice {
namespace {

bool less_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return lower(x) < lower(y); });
}

// The names that Connection declares to be for this connection only (RFC 9110 §7.6.1). Names that
// would break routing or framing are not obeyed. Most messages have none, and pay nothing.
class Nominated {
 public:
  explicit Nominated(const Head& head) {
    for (const Field& field : head.fields) {
      if (field.id != FieldName::connection) continue;
      for_each_element(field.value, [&](std::string_view name) {
        if (field_name(name) != FieldName::other) return;
        if (!equals_ignoring_case(name, "close")) names_.push_back(name);
      });
    }
    if (names_.size() > 1) std::sort(names_.begin(), names_.end(), less_ignoring_case);
  }
  bool has(std::string_view name) const {
    return !names_.empty() &&
           std::binary_search(names_.begin(), names_.end(), name, less_ignoring_case);
  }

 private:
  std::vector<std::string_view> names_;
};

std::size_t size_of(const Head& head) {
  std::size_t size = 0;
  for (const Field& field : head.fields) size += field.name.size() + field.value.size() + 4;
  return size;
}

// Appends to a string for which the room is made once.
class Lines {
 public:
  Lines(std::string& out, std::size_t room) : out_(out) {
    const std::size_t before = out.size();
    out.resize(before + room);
    at_ = out.data() + before;
  }
  ~Lines() { out_.resize(static_cast<std::size_t>(at_ - out_.data())); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  Lines& text(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    return *this;
  }
  Lines& number(std::uint64_t number) {
    at_ = std::to_chars(at_, at_ + kDigits, number).ptr;
    return *this;
  }
  void field(std::string_view name, std::string_view value) {
    text(name).text(": ").text(value).text("\r\n");
  }
  void field(std::string_view name, std::uint64_t value) {
    text(name).text(": ").number(value).text("\r\n");
  }

  static constexpr std::size_t kDigits = 20;
  // For the start line and the fields that are added, without what they take from elsewhere.
  static constexpr std::size_t kOwn = 256;

 private:
  std::string& out_;
  char* at_;
};

}  // namespace

bool wants_upgrade(const Head& head) {
  if (head.minor == 0 || head.framing != Framing::none || head.method != "GET") return false;
  if (!head.lists(FieldName::connection, "upgrade")) return false;
  bool any = false;
  bool refused = false;
  for (const Field& field : head.fields) {
    if (field.id != FieldName::upgrade) continue;
    for_each_element(field.value, [&](std::string_view protocol) {
      any = true;
      refused |= equals_ignoring_case(protocol.substr(0, 2), "h2") ||
                 equals_ignoring_case(protocol.substr(0, 5), "HTTP/");
    });
  }
  return any && !refused;
}

int max_forwards(const Head& head) {
  if (head.method != "TRACE" && head.method != "OPTIONS") return -1;
  const Field* field = head.find(FieldName::max_forwards);
  int hops = -1;
  if (field == nullptr || field->value.size() > 6) return -1;
  const auto end = field->value.data() + field->value.size();
  const auto result = std::from_chars(field->value.data(), end, hops);
  return result.ptr == end && hops >= 0 ? hops : -1;
}

void write_request(std::string& out, const Head& head, const Target& target, std::string_view via,
                   bool upgrade) {
  const Nominated nominated(head);
  const int hops = max_forwards(head);
  Lines lines(out, size_of(head) + head.method.size() + target.path.size() +
                       target.authority.size() + via.size() + Lines::kOwn);
  lines.text(head.method).text(" ");
  if (target.path.empty()) {
    // RFC 9112 §3.2.4: OPTIONS for a URL without a path is about the server as a whole.
    lines.text(head.method == "OPTIONS" ? "*" : "/");
  } else {
    if (target.path.front() == '?') lines.text("/");
    lines.text(target.path);
  }
  lines.text(" HTTP/1.1\r\n");
  lines.field("Host", target.authority);
  for (const Field& field : head.fields) {
    switch (field.id) {
      case FieldName::host:
      case FieldName::content_length:
      case FieldName::proxy_status: continue;  // RFC 9209 §2: a response's, and Proxy-* stays here
      case FieldName::max_forwards:
        if (hops > 0) {
          lines.field(field.name, static_cast<std::uint64_t>(hops - 1));
          continue;
        }
        break;
      case FieldName::upgrade:
        if (upgrade) lines.field(field.name, field.value);
        continue;
      case FieldName::trailer:
        if (head.framing != Framing::chunked) continue;
        break;
      case FieldName::other:
        if (nominated.has(field.name)) continue;
        break;
      default:
        if (is_hop_by_hop(field.id)) continue;
        break;
    }
    lines.field(field.name, field.value);
  }
  if (head.framing == Framing::length) lines.field("Content-Length", head.length);
  if (head.framing == Framing::chunked) lines.field("Transfer-Encoding", "chunked");
  if (upgrade) lines.field("Connection", "Upgrade");
  lines.field("Via", via);
  lines.text("\r\n");
}

void write_response(std::string& out, const Head& head, const ResponsePlan& plan,
                    std::string_view via, std::string_view date) {
  const Nominated nominated(head);
  Lines lines(out, size_of(head) + head.phrase.size() + via.size() + date.size() + Lines::kOwn);
  lines.text("HTTP/1.1 ").number(head.status).text(" ").text(head.phrase).text("\r\n");
  bool dated = false;
  // Without a body the length may still be told: what a GET would have had (RFC 9110 §8.6), but
  // never in a 1xx or 204.
  const bool tells_length =
      plan.framing == Framing::none && head.status >= 200 && head.status != 204;
  for (const Field& field : head.fields) {
    switch (field.id) {
      case FieldName::content_length:
        if (!tells_length) continue;
        break;
      case FieldName::date: dated = true; break;
      case FieldName::upgrade:
        if (plan.upgrade) lines.field(field.name, field.value);
        continue;
      case FieldName::trailer:
        if (plan.framing != Framing::chunked) continue;
        break;
      case FieldName::other:
        if (nominated.has(field.name)) continue;
        break;
      default:
        if (is_hop_by_hop(field.id)) continue;
        break;
    }
    lines.field(field.name, field.value);
  }
  if (!dated && head.status >= 200) lines.field("Date", date);
  if (plan.framing == Framing::length) lines.field("Content-Length", head.length);
  if (plan.framing == Framing::chunked) lines.field("Transfer-Encoding", "chunked");
  lines.field("Via", via);
  if (plan.upgrade) {
    lines.field("Connection", "Upgrade");
  } else if (plan.close) {
    lines.field("Connection", "close");
  } else if (plan.keep_alive_told) {
    lines.field("Connection", "keep-alive");
  }
  lines.text("\r\n");
}

}  // namespace sluice
