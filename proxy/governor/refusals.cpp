#include "proxy/governor/refusals.h"

#include <algorithm>

#include "policy/sentence.h"

namespace sluice {
namespace {

int whole_seconds(Duration left) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(seconds, 1, 1'000'000'000));
}

Refusal about(const std::string& key, const Gate::View& view, const ClockPair& now) {
  Refusal refusal;
  refusal.status = 503;
  refusal.proxy_status = "destination_unavailable";
  refusal.key = key;
  refusal.policy = view.policy;
  refusal.state = phase_word(phase_at(view.state, now.mono));
  refusal.retry_after_s = 1;
  refusal.override_command = "sluice close " + key;
  return refusal;
}

}  // namespace

Refusal not_now(Gate& gate, const Gate::Pass& pass, bool held, const ClockPair& now) {
  const std::string& key = gate.key();
  const Gate::View view = gate.view();
  const Instant until = pass.until;
  const bool money = pass.by == Gate::By::budget;
  const auto in_utc = [&] {
    const UtcTime at = now.utc + (until - now.mono);
    // A reset is on a whole second; two clocks that are read one after the other are not.
    return money ? UtcTime(std::chrono::round<std::chrono::seconds>(at)) : at;
  };
  Refusal refusal = about(key, view, now);
  if (pass.by == Gate::By::limit || money) {
    refusal.status = 429;
    refusal.reason = money ? "budget" : "limit";
    refusal.proxy_status = "http_request_denied";
    refusal.override_command.clear();  // no command does: more money or other limits do
    refusal.hopeless = money;
    refusal.detail = !money ? "the policy's limits for " + key + " are used up"
                            : pass.why + ": until " + clock_time(in_utc(), now.utc) +
                                  " nothing that costs is sent, unless [budget] allows more";
  } else if (pass.by == Gate::By::price) {
    refusal.reason = "hold-timeout";
    refusal.override_command.clear();
    refusal.detail = pass.why;
  } else if (phase_at(view.state, now.mono) == Phase::closed) {
    refusal.reason = "hold-timeout";
    refusal.detail = key + " is asked no faster than it allows, and hold.max_wait is over: " +
                     gate.pace(now.mono);
  } else {
    const bool open = phase_at(view.state, now.mono) == Phase::open;
    refusal.reason = open || !held ? "breaker-open" : "hold-timeout";
    refusal.detail = sentence(key, view.state, now.mono, now.utc);
  }
  if (until > now.mono && until != Instant::max()) {
    refusal.retry_after_s = whole_seconds(until - now.mono);
    refusal.until = iso_time(in_utc());
  }
  return refusal;
}

Refusal queue_full(const std::string& key, const Gate::View& view, const ClockPair& now) {
  Refusal refusal = about(key, view, now);
  refusal.reason = "queue-full";
  refusal.proxy_status = "connection_limit_reached";
  refusal.detail = std::to_string(view.held) + " requests are already waiting for " + key;
  refusal.until = iso_time(now.utc + std::chrono::seconds(refusal.retry_after_s));
  refusal.override_command.clear();  // the queue is not shut, it is long
  return refusal;
}

Refusal store_unavailable(const std::string& key, const Gate::View& view, std::string_view why,
                          const ClockPair& now) {
  Refusal refusal = about(key, view, now);
  refusal.state = "unknown";
  refusal.reason = "store-unavailable";
  refusal.proxy_status = "proxy_internal_error";
  refusal.detail = "what is known about " + key + " cannot be read: " + std::string(why);
  refusal.retry_after_s = 5;
  refusal.until = iso_time(now.utc + std::chrono::seconds(refusal.retry_after_s));
  return refusal;
}

}  // namespace sluice
