#include "policy/sentence.h"

#include <doctest/doctest.h>

#include <string>

using namespace sluice;

namespace {

constexpr Instant kNow{1000s};
constexpr UtcTime kUtc{1773309690s};  // 2026-03-12 10:01:30 UTC

HostState open_state(Cause cause, std::uint16_t status, Duration left) {
  HostState state;
  state.phase = Phase::open;
  state.cause = cause;
  state.status = status;
  state.until = kNow + left;
  return state;
}

std::string about(const HostState& state) { return sentence("api.test", state, kNow, kUtc); }

}  // namespace

TEST_CASE("sentence: one for each way to be shut") {
  struct Row {
    HostState state;
    std::string text;
  };
  HostState shut = open_state(Cause::operator_act, 0, 10min);
  shut.reason = "maintenance";
  HostState capped = open_state(Cause::named_time, 429, 15min);
  capped.asked = 2h + 5min;
  const Row rows[] = {
      {open_state(Cause::named_time, 429, 41s),
       "api.test is cooling down after 429 Too Many Requests: 41 s left, until 10:02:11 UTC"},
      {open_state(Cause::named_time, 418, 41s),
       "api.test is cooling down after 418: 41 s left, until 10:02:11 UTC"},
      {open_state(Cause::consecutive, 500, 1min),
       "api.test is cooling down after failures in a row, the last of them 500 Internal Server "
       "Error: 1 min left, until 10:02:30 UTC"},
      {open_state(Cause::window, 429, 5min),
       "api.test is cooling down after too many failures, the last of them 429 Too Many Requests: "
       "5 min left, until 10:06:30 UTC"},
      {open_state(Cause::consecutive, 0, 1min),
       "api.test is cooling down after failures in a row, the last of them a network failure: "
       "1 min left, until 10:02:30 UTC"},
      {open_state(Cause::anti_bot, 403, 48h),
       "api.test is cooling down after an anti-bot answer with status 403 Forbidden: 2 d left, "
       "until "
       "2026-03-14 10:01:30 UTC"},
      {open_state(Cause::probe_failed, 503, 15min),
       "api.test is cooling down after a probe that met 503 Service Unavailable: 15 min left, "
       "until "
       "10:16:30 UTC"},
      {open_state(Cause::no_credit, 402, 1h),
       "api.test is cooling down after 402 Payment Required (out of credit): 1 h left, until "
       "11:01:30 UTC"},
      {open_state(Cause::operator_act, 0, 10min),
       "api.test is cooling down after an operator shut it: 10 min left, until 10:11:30 UTC"},
      {shut,
       "api.test is cooling down after an operator shut it (maintenance): 10 min left, until "
       "10:11:30 UTC"},
      {capped,
       "api.test is cooling down after 429 Too Many Requests: 15 min left, until 10:16:30 UTC; the "
       "origin asked for 2 h 5 min, a probe will ask again"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(about(row.state) == row.text);
  }
}

TEST_CASE("sentence: not shut, and no longer shut") {
  CHECK(about(HostState{}) == "api.test lets requests through");
  HostState over = open_state(Cause::named_time, 429, -1s);
  CHECK(about(over) == "api.test waits for a probe after 429 Too Many Requests");
  over.phase = Phase::half_open;
  over.leases.push_back({1, kNow + 30s});
  CHECK(about(over) == "api.test is being probed after 429 Too Many Requests");
}

TEST_CASE("sentence: the words for scripts") {
  CHECK(phase_word(Phase::closed) == "closed");
  CHECK(phase_word(Phase::open) == "open");
  CHECK(phase_word(Phase::half_open) == "half-open");
  CHECK(cause_word(Cause::none) == "none");
  CHECK(cause_word(Cause::named_time) == "named-time");
  CHECK(cause_word(Cause::consecutive) == "consecutive");
  CHECK(cause_word(Cause::window) == "window");
  CHECK(cause_word(Cause::anti_bot) == "anti-bot");
  CHECK(cause_word(Cause::probe_failed) == "probe-failed");
  CHECK(cause_word(Cause::operator_act) == "operator");
  CHECK(cause_word(Cause::no_credit) == "no-credit");
}

TEST_CASE("sentence: a moment is over when the clock shows it") {
  CHECK(clock_time(kUtc, kUtc) == "10:01:30 UTC");
  CHECK(clock_time(kUtc + 1us, kUtc) == "10:01:31 UTC");
  CHECK(clock_time(kUtc + 12h - 1s, kUtc) == "22:01:29 UTC");
  CHECK(clock_time(kUtc + 12h, kUtc) == "2026-03-12 22:01:30 UTC");
  CHECK(clock_time(kUtc - 12h, kUtc) == "2026-03-11 22:01:30 UTC");
  CHECK(status_name(429) == "429 Too Many Requests");
  CHECK(status_name(599) == "599");
}
