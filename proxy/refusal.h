// An answer that the proxy gives itself instead of forwarding: every refusal and every failure on
// the way to the origin. One value, rendered for whoever asked: problem+json (RFC 9457), text or
// HTML. Holds nothing of the request but its host, so no secret can come back in an error page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/http/head.h"

namespace sluice {

struct Refusal {
  std::uint16_t status = 502;
  std::string_view reason;         // the word in Sluice-Reason; DESIGN: scripts rely on it
  std::string_view proxy_status;   // the error type of RFC 9209 §2.3
  std::string detail;              // one sentence
  std::string host{};              // may be empty: not every request names one
  int retry_after_s = 0;           // 0: no time is known, and none is told
  std::string challenge{};         // Proxy-Authenticate, with 407
  std::string key{}, policy{};     // whose state refuses; empty: nobody's
  std::string_view state{};        // of its breaker: closed, open, half-open
  std::string until{};             // RFC 3339; empty: nobody knows
  std::string override_command{};  // what lifts it
  bool hopeless = false;           // waiting makes no sense: x-should-retry: false
};

enum class ReplyFormat : std::uint8_t { json, text, html };
ReplyFormat preferred_format(
    const Head& request);  // by Accept; problem+json unless asked otherwise

struct ReplyOptions {
  ReplyFormat format = ReplyFormat::json;
  bool head_only = false;  // the answer to HEAD
  bool close = false;
  std::string_view date;
};

std::string render(const Refusal& refusal, const ReplyOptions& options);

std::string_view status_phrase(std::uint16_t status);
std::string escape_html(std::string_view text);

}  // namespace sluice
