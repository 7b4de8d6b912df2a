#include "proxy/help_page.h"

namespace sluice {
namespace {

// Credentials travel under many names: one field too few in an echo harms nobody.
bool may_be_secret(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  for (const std::string_view part :
       {"auth", "cookie", "credential", "key", "passw", "secret", "session", "signature", "token"})
    if (lower.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

std::string help_page(std::string_view listen) {
  const std::string url = "http://" + std::string(listen);
  return "This is Sluice, a forward HTTP proxy that keeps clients inside the limits of the APIs\n"
         "they call. It is not a web server: point your client at it as its proxy.\n\n"
         "  export HTTP_PROXY=" +
         url + " HTTPS_PROXY=" + url +
         "\n"
         "  export http_proxy=" +
         url + " https_proxy=" + url +
         "\n"
         "  curl http://example.com/\n";
}

std::string traced(const Head& request) {
  std::string out(request.method);
  out.append(" ")
      .append(request.target)
      .append(" HTTP/1.")
      .append(1, static_cast<char>('0' + request.minor));
  out += "\r\n";
  for (const Field& field : request.fields) {
    const bool secret = may_be_secret(field.name) || is_hop_by_hop(field.id);
    if (!secret) out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return out + "\r\n";
}

std::string local_reply(std::string_view body, std::string_view type, const ReplyOptions& options) {
  std::string out = "HTTP/1.1 200 OK\r\n";
  const auto add = [&](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  if (!body.empty()) add("Content-Type", type);
  add("Content-Length", std::to_string(body.size()));
  add("Date", options.date);
  add("Cache-Control", "no-store");
  if (options.close) add("Connection", "close");
  out += "\r\n";
  if (!options.head_only) out += body;
  return out;
}

}  // namespace sluice
