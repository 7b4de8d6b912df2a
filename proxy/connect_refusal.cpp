#include "proxy/connect_refusal.h"

namespace sluice {

Refusal connect_refusal(const Connected& failed) {
  Refusal refusal;
  refusal.detail = failed.detail;
  const auto set = [&](std::uint16_t status, std::string_view reason, std::string_view type) {
    refusal.status = status;
    refusal.reason = reason;
    refusal.proxy_status = type;
  };
  switch (failed.error) {
    case ConnectError::none:
    case ConnectError::bad_name:
    case ConnectError::name_not_found:
    case ConnectError::name_failed: set(502, "dns", "dns_error"); break;
    case ConnectError::name_timed_out: set(502, "dns", "dns_timeout"); break;
    case ConnectError::denied: set(403, "destination-denied", "destination_ip_prohibited"); break;
    case ConnectError::self: set(508, "loop", "proxy_loop_detected"); break;
    case ConnectError::refused: set(502, "connect", "connection_refused"); break;
    case ConnectError::unreachable: set(502, "connect", "destination_ip_unroutable"); break;
    case ConnectError::timed_out: set(504, "connect-timeout", "connection_timeout"); break;
    case ConnectError::local:
      set(503, "overloaded", "connection_limit_reached");
      refusal.retry_after_s = 1;
      break;
  }
  return refusal;
}

OutcomeKind blame(ConnectError error) {
  switch (error) {
    case ConnectError::refused:
    case ConnectError::unreachable:
    case ConnectError::timed_out: return OutcomeKind::network;
    default: return OutcomeKind::local;
  }
}

}  // namespace sluice
