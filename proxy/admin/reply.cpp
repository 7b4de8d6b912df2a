#include "proxy/admin/reply.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "proxy/refusal.h"

namespace sluice {
namespace {

// Trusted types make the browser refuse innerHTML and its kin, should a later hand write one.
constexpr std::string_view kSafety =
    "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

std::string_view phrase(std::uint16_t status) {
  switch (status) {
    case 202: return "Accepted";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 415: return "Unsupported Media Type";
    default: return status_phrase(status);
  }
}

// RFC 9110 §5.6.7: IMF-fixdate, always GMT.
std::string http_date(UtcTime now) {
  const time_t time = now.time_since_epoch() / 1s;
  tm parts;
  gmtime_r(&time, &parts);
  char text[40];
  return {text, strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

}  // namespace

AdminReply admin_error(std::uint16_t status, std::string_view sentence) {
  const nlohmann::json body{{"error", sentence}};
  AdminReply reply;
  reply.status = status;
  reply.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  reply.challenge = status == 401;
  return reply;
}

std::string render(const AdminReply& reply, bool head_only, bool close, UtcTime now) {
  std::string out = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  const auto add = [&](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  out.append(phrase(reply.status)).append("\r\n");
  add("Date", http_date(now));
  add("Content-Type", reply.type);
  if (!reply.stream) add("Content-Length", std::to_string(reply.body.size()));
  if (!reply.allow.empty()) add("Allow", reply.allow);
  if (reply.challenge) add("WWW-Authenticate", "Bearer realm=\"sluice\"");
  out += kSafety;
  if (close || reply.stream) add("Connection", "close");
  out += "\r\n";
  if (!head_only) out += reply.body;
  return out;
}

}  // namespace sluice
