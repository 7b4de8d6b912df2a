#include "proxy/help_page.h"

namespace sluice {

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
    const bool secret = equals_ignoring_case(field.name, "authorization") ||
                        equals_ignoring_case(field.name, "cookie") || is_hop_by_hop(field.id);
    if (!secret) out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return out + "\r\n";
}

std::string local_reply(std::string_view body, std::string_view type, bool head_only,
                        std::string_view date, bool close) {
  std::string out = "HTTP/1.1 200 OK\r\n";
  if (!body.empty()) out.append("Content-Type: ").append(type).append("\r\n");
  out.append("Content-Length: ")
      .append(std::to_string(body.size()))
      .append("\r\nDate: ")
      .append(date);
  out += "\r\nCache-Control: no-store\r\n";
  if (close) out += "Connection: close\r\n";
  out += "\r\n";
  if (!head_only) out += body;
  return out;
}

}  // namespace sluice
