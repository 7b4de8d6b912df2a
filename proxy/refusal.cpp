#include "proxy/refusal.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace sluice {
namespace {

constexpr std::array<bool, 256> odd_bytes() {
  std::array<bool, 256> odd{};
  for (unsigned c = 0; c < odd.size(); ++c) odd[c] = c < ' ' || c > '~' || c == '"' || c == '\\';
  return odd;
}

// Printable ASCII that needs no escapes in a quoted string, of JSON or of a header.
bool is_plain(std::string_view text) {
  static constexpr auto odd = odd_bytes();
  bool found = false;
  for (const char c : text) found |= odd[static_cast<unsigned char>(c)];
  return !found;
}

// Most texts are plain. The library writes the others, and replaces what is not UTF-8.
void append_json_text(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    out.append(1, '"').append(text).append(1, '"');
  } else {
    out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

// Written by hand: a document of the library's is most of what a refusal would cost.
std::string json_body(const Refusal& refusal) {
  std::string body;
  body.reserve(512);
  const auto name = [&body](std::string_view name) {
    body.append(body.empty() ? "{\n  \"" : ",\n  \"").append(name).append("\": ");
  };
  const auto text = [&](std::string_view key, std::string_view value) {
    if (value.empty()) return;
    name(key);
    append_json_text(body, value);
  };
  const auto number = [&](std::string_view key, int value) {
    name(key);
    body += std::to_string(value);
  };
  text("title", status_phrase(refusal.status));
  number("status", refusal.status);
  name("detail");
  append_json_text(body, refusal.detail);
  text("host", refusal.host);
  text("key", refusal.key);
  text("policy", refusal.policy);
  name("reason");
  append_json_text(body, refusal.reason);
  text("state", refusal.state);
  text("until", refusal.until);
  if (refusal.retry_after_s > 0) number("retry_after_s", refusal.retry_after_s);
  text("override", refusal.override_command);
  return body.append("\n}\n");
}

std::string text_body(const Refusal& refusal) {
  return std::to_string(refusal.status) + " " + std::string(status_phrase(refusal.status)) + " (" +
         std::string(refusal.reason) + ")\n" + refusal.detail + "\n" +
         (refusal.override_command.empty() ? "" : "To lift it: " + refusal.override_command + "\n");
}

std::string html_body(const Refusal& refusal) {
  const auto title =
      std::to_string(refusal.status) + " " + std::string(status_phrase(refusal.status));
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + title +
         "</title></head>\n<body><h1>" + title + "</h1>\n<p>" + escape_html(refusal.detail) +
         "</p>\n<p>Sluice, reason: <code>" + escape_html(refusal.reason) + "</code></p>\n" +
         (refusal.override_command.empty()
              ? ""
              : "<p>To lift it: <code>" + escape_html(refusal.override_command) + "</code></p>\n") +
         "</body></html>\n";
}

// A quoted string of RFC 8941 §3.3.3: printable ASCII only.
void append_quoted(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    out.append(1, '"').append(text).append(1, '"');
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= 0x20 && c < 0x7f ? c : '?';
  }
  out += '"';
}

// RFC 9110 §12.4.2: "q=0.5"; 1 when it says nothing that can be read.
double quality_of(std::string_view element) {
  double quality = 1;
  for (auto at = element.find(';'); at != std::string_view::npos; at = element.find(';')) {
    element.remove_prefix(at + 1);
    const auto parameter = trim(element.substr(0, element.find(';')));
    if (!equals_ignoring_case(parameter.substr(0, 2), "q=")) continue;
    const auto value = parameter.substr(2);
    std::from_chars(value.data(), value.data() + value.size(), quality);
  }
  return quality;
}

}  // namespace

ReplyFormat preferred_format(const Head& request) {
  const Field* accept = request.find(FieldName::accept);
  ReplyFormat best = ReplyFormat::json;
  if (accept == nullptr) return best;
  double best_quality = 0;
  for_each_element(accept->value, [&](std::string_view element) {
    const auto type = trim(element.substr(0, element.find(';')));
    const double quality = quality_of(element);
    if (quality <= best_quality) return;
    if (equals_ignoring_case(type, "text/html")) {
      best = ReplyFormat::html;
    } else if (equals_ignoring_case(type, "text/plain")) {
      best = ReplyFormat::text;
    } else if (type.find("json") != std::string_view::npos) {
      best = ReplyFormat::json;
    } else {
      return;
    }
    best_quality = quality;
  });
  return best;
}

std::string render(const Refusal& refusal, const ReplyOptions& options) {
  std::string body;
  std::string_view type;
  switch (options.format) {
    case ReplyFormat::json:
      body = json_body(refusal);
      type = "application/problem+json";
      break;
    case ReplyFormat::text:
      body = text_body(refusal);
      type = "text/plain; charset=utf-8";
      break;
    case ReplyFormat::html:
      body = html_body(refusal);
      type = "text/html; charset=utf-8";
      break;
  }
  std::string out;
  out.reserve(512 + refusal.detail.size() + body.size());
  out.append("HTTP/1.1 ").append(std::to_string(refusal.status)).append(" ");
  const auto add = [&](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  out.append(status_phrase(refusal.status)).append("\r\n");
  add("Content-Type", type);
  // It is shown as a page of the origin's: nothing in it is to run or to load, whatever slips in.
  if (options.format == ReplyFormat::html) {
    add("Content-Security-Policy", "default-src 'none'");
    add("X-Content-Type-Options", "nosniff");
  }
  add("Content-Length", std::to_string(body.size()));
  add("Date", options.date);
  add("Cache-Control", "no-store");
  out.append("Proxy-Status: sluice; error=").append(refusal.proxy_status).append("; details=");
  append_quoted(out, refusal.detail);
  out += "\r\n";
  add("Sluice-Reason", refusal.reason);
  if (refusal.retry_after_s > 0) add("Retry-After", std::to_string(refusal.retry_after_s));
  if (refusal.hopeless) add("X-Should-Retry", "false");
  if (!refusal.challenge.empty()) add("Proxy-Authenticate", refusal.challenge);
  if (options.close) add("Connection", "close");
  out += "\r\n";
  if (!options.head_only) out += body;
  return out;
}

std::string_view status_phrase(std::uint16_t status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 407: return "Proxy Authentication Required";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 421: return "Misdirected Request";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 508: return "Loop Detected";
    default: return "Error";
  }
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace sluice
