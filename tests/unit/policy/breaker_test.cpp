// The breaker as tables: every phase with every outcome, every rung, every bound.
#include "policy/breaker.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "policy/sentence.h"

using namespace sluice;

namespace {

using Kind = OutcomeKind;
using Act = Decision::Act;

constexpr Instant t0{1000h};
constexpr double no_jitter = 0.0;
const Rules rules;  // the defaults of DESIGN §2

HostState closed_at_epoch(std::uint64_t epoch, std::uint32_t consecutive = 0) {
  HostState state;
  state.epoch = epoch;
  state.consecutive = consecutive;
  return state;
}

// Shut at t0 for a minute by five failures in a row, epoch 1.
HostState open_state() {
  HostState state;
  for (int i = 0; i < 5; ++i) {
    state = observe(rules, state, t0, {.kind = Kind::server_error, .status = 500}, no_jitter);
  }
  REQUIRE(state.phase == Phase::open);
  REQUIRE(state.until == t0 + 1min);
  return state;
}

// A minute later, with probe 1 on its way.
HostState half_open_state() {
  auto step = decide(rules, open_state(), t0 + 1min, {});
  REQUIRE(step.decision.act == Act::probe);
  return step.next;
}

Outcome outcome(Kind kind, std::uint16_t status, Ticket ticket = {},
                std::optional<Duration> wait = {}) {
  return {.kind = kind, .status = status, .wait = wait, .ticket = ticket};
}

}  // namespace

TEST_CASE("breaker: what each outcome does in each phase") {
  struct Row {
    const char* name;
    HostState before;
    Outcome outcome;
    Phase phase;
    Cause cause;
    Duration left;  // of the cooldown; only when open
    std::uint32_t level, antibot_level, consecutive;
    std::uint64_t epoch;
    std::size_t leases;
  };
  const HostState one_bad = closed_at_epoch(0, 1), four_bad = closed_at_epoch(0, 4);
  const HostState open = open_state(), half = half_open_state();
  const Ticket now_closed{0, 0}, before_trip{0, 0}, in_spite{1, 0}, probe{1, 1};
  const Instant now = t0 + 1min;
  const Row rows[] = {
      // closed
      {"closed: 200 -> a clean slate", one_bad, outcome(Kind::success, 200, now_closed),
       Phase::closed, Cause::none, 0s, 0, 0, 0, 0, 0},
      {"closed: 404 -> a clean slate", one_bad, outcome(Kind::neutral, 404, now_closed),
       Phase::closed, Cause::none, 0s, 0, 0, 0, 0, 0},
      {"closed: our DNS -> unchanged", one_bad, outcome(Kind::local, 0, now_closed), Phase::closed,
       Cause::none, 0s, 0, 0, 1, 0, 0},
      {"closed: 500 -> one more", one_bad, outcome(Kind::server_error, 500, now_closed),
       Phase::closed, Cause::none, 0s, 0, 0, 2, 0, 0},
      {"closed: reset -> one more", one_bad, outcome(Kind::network, 0, now_closed), Phase::closed,
       Cause::none, 0s, 0, 0, 2, 0, 0},
      {"closed: 429 -> one more", one_bad, outcome(Kind::rate_limited, 429, now_closed),
       Phase::closed, Cause::none, 0s, 0, 0, 2, 0, 0},
      {"closed: the fifth 500 -> open", four_bad, outcome(Kind::server_error, 500, now_closed),
       Phase::open, Cause::consecutive, 1min, 1, 0, 0, 1, 0},
      {"closed: the fifth reset -> open", four_bad, outcome(Kind::network, 0, now_closed),
       Phase::open, Cause::consecutive, 1min, 1, 0, 0, 1, 0},
      {"closed: 429 with a time -> open", one_bad,
       outcome(Kind::rate_limited, 429, now_closed, 30s), Phase::open, Cause::named_time, 30s, 1, 0,
       0, 1, 0},
      {"closed: 500 with a time -> one more", one_bad,
       outcome(Kind::server_error, 500, now_closed, 30s), Phase::closed, Cause::none, 0s, 0, 0, 2,
       0, 0},
      {"closed: the fifth 500 with a time -> the longer", four_bad,
       outcome(Kind::server_error, 500, now_closed, 90s), Phase::open, Cause::consecutive, 90s, 1,
       0, 0, 1, 0},
      {"closed: a block -> open for long", one_bad, outcome(Kind::anti_bot, 200, now_closed),
       Phase::open, Cause::anti_bot, 1h, 0, 1, 0, 1, 0},
      // open
      {"open: late 200 -> still open", open, outcome(Kind::success, 200, before_trip), Phase::open,
       Cause::consecutive, 0s, 1, 0, 0, 1, 0},
      {"open: late 404 -> still open", open, outcome(Kind::neutral, 404, before_trip), Phase::open,
       Cause::consecutive, 0s, 1, 0, 0, 1, 0},
      {"open: late 500 -> the same trip", open, outcome(Kind::server_error, 500, before_trip),
       Phase::open, Cause::consecutive, 0s, 1, 0, 0, 1, 0},
      {"open: late 429 -> the same trip", open, outcome(Kind::rate_limited, 429, before_trip),
       Phase::open, Cause::consecutive, 0s, 1, 0, 0, 1, 0},
      {"open: late reset -> the same trip", open, outcome(Kind::network, 0, before_trip),
       Phase::open, Cause::consecutive, 0s, 1, 0, 0, 1, 0},
      {"open: our DNS -> unchanged", open, outcome(Kind::local, 0, before_trip), Phase::open,
       Cause::consecutive, 0s, 1, 0, 0, 1, 0},
      {"open: late 429 with a time -> longer, no rung", open,
       outcome(Kind::rate_limited, 429, before_trip, 5min), Phase::open, Cause::consecutive, 5min,
       1, 0, 0, 1, 0},
      {"open: a late block -> a block", open, outcome(Kind::anti_bot, 200, before_trip),
       Phase::open, Cause::anti_bot, 1h, 1, 1, 0, 1, 0},
      {"open: 200 in spite of it -> still open", open, outcome(Kind::success, 200, in_spite),
       Phase::open, Cause::consecutive, 0s, 1, 0, 0, 1, 0},
      {"open: 500 in spite of it -> no rung", open, outcome(Kind::server_error, 500, in_spite),
       Phase::open, Cause::consecutive, 0s, 1, 0, 0, 1, 0},
      // half-open
      {"half-open: probe 200 -> closed", half, outcome(Kind::success, 200, probe), Phase::closed,
       Cause::none, 0s, 1, 0, 0, 1, 0},
      {"half-open: probe 404 -> closed", half, outcome(Kind::neutral, 404, probe), Phase::closed,
       Cause::none, 0s, 1, 0, 0, 1, 0},
      {"half-open: probe lost by us -> slot free", half, outcome(Kind::local, 0, probe),
       Phase::half_open, Cause::consecutive, 0s, 1, 0, 0, 1, 0},
      {"half-open: probe 500 -> open, a rung up", half, outcome(Kind::server_error, 500, probe),
       Phase::open, Cause::probe_failed, 5min, 2, 0, 0, 2, 0},
      {"half-open: probe silent -> open, a rung up", half, outcome(Kind::network, 0, probe),
       Phase::open, Cause::probe_failed, 5min, 2, 0, 0, 2, 0},
      {"half-open: probe 429 -> open, a rung up", half, outcome(Kind::rate_limited, 429, probe),
       Phase::open, Cause::probe_failed, 5min, 2, 0, 0, 2, 0},
      {"half-open: probe 429 with a time -> that time, a rung up", half,
       outcome(Kind::rate_limited, 429, probe, 7s), Phase::open, Cause::named_time, 7s, 2, 0, 0, 2,
       0},
      {"half-open: probe blocked -> open for long", half, outcome(Kind::anti_bot, 403, probe),
       Phase::open, Cause::anti_bot, 1h, 1, 1, 0, 2, 0},
      {"half-open: late 200 -> still half-open", half, outcome(Kind::success, 200, before_trip),
       Phase::half_open, Cause::consecutive, 0s, 1, 0, 0, 1, 1},
      {"half-open: late 500 -> still half-open", half,
       outcome(Kind::server_error, 500, before_trip), Phase::half_open, Cause::consecutive, 0s, 1,
       0, 0, 1, 1},
      {"half-open: late block -> still half-open", half, outcome(Kind::anti_bot, 200, before_trip),
       Phase::half_open, Cause::consecutive, 0s, 1, 0, 0, 1, 1},
      {"half-open: late 429 with a time -> open for it, no rung", half,
       outcome(Kind::rate_limited, 429, before_trip, 20s), Phase::open, Cause::named_time, 20s, 1,
       0, 0, 2, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const HostState after = observe(rules, row.before, now, row.outcome, no_jitter);
    CHECK(after.phase == row.phase);
    CHECK(after.cause == row.cause);
    if (row.phase == Phase::open) CHECK(after.until - now == row.left);
    CHECK(after.level == row.level);
    CHECK(after.antibot_level == row.antibot_level);
    CHECK(after.consecutive == row.consecutive);
    CHECK(after.epoch == row.epoch);
    CHECK(after.leases.size() == row.leases);
  }
}

TEST_CASE("breaker: what a body adds to a failure that was observed at its head") {
  struct Row {
    const char* name;
    HostState before;
    Outcome head;
    Phase phase;
    Cause cause;
    Duration left;  // of the cooldown; only when open
    std::uint32_t level, antibot_level;
    std::uint64_t trips;  // of both
  };
  const HostState one_bad = closed_at_epoch(0, 1), four_bad = closed_at_epoch(0, 4);
  HostState open_for_long = open_state();
  open_for_long.until = t0 + 5h;
  const HostState half = half_open_state();
  const Ticket now_closed{0, 0}, probe{1, 1};
  const Instant now = t0 + 1min;
  const Row rows[] = {
      {"closed: 429 -> the first trip", one_bad, outcome(Kind::rate_limited, 429, now_closed),
       Phase::open, Cause::anti_bot, 1h, 0, 1, 1},
      {"closed: 503 -> the first trip", one_bad, outcome(Kind::server_error, 503, now_closed),
       Phase::open, Cause::anti_bot, 1h, 0, 1, 1},
      {"closed: 429 with a time -> its trip, for longer", one_bad,
       outcome(Kind::rate_limited, 429, now_closed, 30s), Phase::open, Cause::anti_bot, 1h, 1, 1,
       1},
      {"closed: the fifth failure -> its trip, for longer", four_bad,
       outcome(Kind::rate_limited, 429, now_closed), Phase::open, Cause::anti_bot, 1h, 1, 1, 1},
      {"open: late 429 -> the trip that stands, for longer", open_state(),
       outcome(Kind::rate_limited, 429, now_closed), Phase::open, Cause::anti_bot, 1h, 1, 1, 1},
      {"open for longer than a block -> not for less", open_for_long,
       outcome(Kind::rate_limited, 429, now_closed), Phase::open, Cause::consecutive, 5h - 1min, 1,
       0, 1},
      {"half-open: probe 429 -> open for long", half, outcome(Kind::rate_limited, 429, probe),
       Phase::open, Cause::anti_bot, 1h, 2, 1, 2},
      {"half-open: probe 200, taken for good -> open after all", half,
       outcome(Kind::success, 200, probe), Phase::open, Cause::anti_bot, 1h, 1, 1, 2},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const HostState at_head = observe(rules, row.before, now, row.head, no_jitter);
    Outcome body = row.head;
    body.kind = Kind::anti_bot;
    body.amends = true;
    const HostState after = observe(rules, at_head, now, body, no_jitter);
    CHECK(after.phase == row.phase);
    CHECK(after.cause == row.cause);
    CHECK(after.until - now == row.left);
    CHECK(after.level == row.level);
    CHECK(after.antibot_level == row.antibot_level);
    CHECK(after.counts.trips == row.trips);
    CHECK(after.window.empty());
    Counts counted = after.counts;
    counted.trips = at_head.counts.trips;
    CHECK(counted == at_head.counts);  // one answer is one answer
    CHECK(observe(rules, after, now, body, no_jitter).until == after.until);
  }
}

TEST_CASE("breaker: a body that adds nothing changes nothing") {
  const HostState before = closed_at_epoch(0, 2);
  Outcome body = outcome(Kind::rate_limited, 429);
  body.amends = true;
  const HostState after = observe(rules, before, t0, body, no_jitter);
  CHECK(after.phase == Phase::closed);
  CHECK(after.consecutive == before.consecutive);
  CHECK(after.window.empty());
}

TEST_CASE("breaker: every outcome is counted once, whatever it does") {
  HostState state;
  const Kind kinds[] = {Kind::success,      Kind::neutral, Kind::rate_limited, Kind::anti_bot,
                        Kind::server_error, Kind::network, Kind::local};
  for (Kind kind : kinds) state = observe(rules, state, t0, outcome(kind, 0), no_jitter);
  const Counts one_each{1, 1, 1, 1, 1, 1, 1, 0, 1, 0};
  CHECK(state.counts == one_each);
}

TEST_CASE("breaker: what the policy does not call a failure counts for nothing") {
  Rules mild;
  mild.classify.failures = {Kind::rate_limited};
  HostState state;
  for (int i = 0; i < 50; ++i) {
    for (Kind kind : {Kind::server_error, Kind::network, Kind::anti_bot}) {
      state = observe(mild, state, t0, outcome(kind, 500), no_jitter);
    }
  }
  CHECK(state.phase == Phase::closed);
  mild.classify.failures = {Kind::success, Kind::neutral, Kind::local};  // never failures
  for (int i = 0; i < 50; ++i) {
    for (Kind kind : {Kind::success, Kind::neutral, Kind::local}) {
      state = observe(mild, state, t0, outcome(kind, 200), no_jitter);
    }
  }
  CHECK(state.phase == Phase::closed);
}

TEST_CASE("breaker: the window counts one kind within a time") {
  HostState state;
  const auto at = [&](Duration time, Kind kind) {
    state = observe(rules, state, t0 + time, outcome(kind, 429, {state.epoch, 0}), no_jitter);
    return state.phase;
  };
  CHECK(at(0min, Kind::rate_limited) == Phase::closed);
  CHECK(at(1min, Kind::success) == Phase::closed);
  CHECK(at(5min, Kind::rate_limited) == Phase::closed);
  CHECK(at(6min, Kind::success) == Phase::closed);
  CHECK(at(7min, Kind::server_error) == Phase::closed);
  CHECK(at(8min, Kind::success) == Phase::closed);
  CHECK(at(10min, Kind::rate_limited) == Phase::closed);  // the first is ten minutes old
  CHECK(at(11min, Kind::success) == Phase::closed);
  CHECK(at(14min + 59s, Kind::rate_limited) == Phase::open);
  CHECK(state.cause == Cause::window);
  CHECK(state.window.empty());
}

TEST_CASE("breaker: each rung of both ladders, then the last one for ever") {
  struct Row {
    Kind kind;
    std::vector<Duration> cooldowns;
  };
  const Row rows[] = {{Kind::server_error, {1min, 5min, 15min, 1h, 1h, 1h}},
                      {Kind::anti_bot, {1h, 6h, 12h, 24h, 48h, 48h}}};
  for (const Row& row : rows) {
    HostState state = closed_at_epoch(0, 4);
    Instant now = t0;
    Ticket ticket;
    for (Duration cooldown : row.cooldowns) {
      state = observe(rules, state, now, outcome(row.kind, 500, ticket), no_jitter);
      CHECK(state.until - now == cooldown);
      now = state.until;
      auto step = decide(rules, state, now, {.arrived = now});
      REQUIRE(step.decision.act == Act::probe);
      state = step.next;
      ticket = step.decision.ticket;
    }
  }
}

TEST_CASE("breaker: trips on the origin's word stay on the first rung") {
  HostState state;
  for (int i = 0; i < 10; ++i) {
    const Instant now = t0 + i * 1h;
    state = observe(rules, state, now, outcome(Kind::rate_limited, 429, {state.epoch, 0}, 10s),
                    no_jitter);
    CHECK(state.level == 1);
    auto step = decide(rules, state, state.until, {});
    state = observe(rules, step.next, state.until,
                    outcome(Kind::success, 200, step.decision.ticket), no_jitter);
    REQUIRE(state.phase == Phase::closed);
  }
}

TEST_CASE("breaker: one level down for each decay without a failure") {
  struct Row {
    Duration quiet;
    std::uint32_t level, antibot_level;
  };
  const Row rows[] = {{0h, 3, 1},  {48h - 1us, 3, 1}, {48h, 2, 0},
                      {95h, 2, 0}, {96h, 1, 0},       {1000h, 0, 0}};
  HostState state;
  state.level = 3;
  state.antibot_level = 1;
  state.calm_since = t0;
  for (const Row& row : rows) {
    const HostState after = decayed(rules, state, t0 + row.quiet);
    CHECK(after.level == row.level);
    CHECK(after.antibot_level == row.antibot_level);
    CHECK(decayed(rules, after, t0 + row.quiet) == after);  // looking twice changes nothing
  }
  // Being shut is not being quiet.
  HostState shut = observe(rules, HostState{}, t0, outcome(Kind::anti_bot, 200), no_jitter);
  CHECK(decayed(rules, shut, shut.until + 47h).antibot_level == 1);
  CHECK(decayed(rules, shut, shut.until + 48h).antibot_level == 0);
  // A failure that does not trip starts the count again, after what was earned.
  state.epoch = 0;
  state = observe(rules, state, t0 + 50h, outcome(Kind::server_error, 500), no_jitter);
  CHECK(state.level == 2);
  CHECK(decayed(rules, state, t0 + 97h).level == 2);
  CHECK(decayed(rules, state, t0 + 98h).level == 1);
}

TEST_CASE("breaker: a long Retry-After is capped, and said") {
  const auto state = observe(rules, {}, t0, outcome(Kind::rate_limited, 429, {}, 3h), no_jitter);
  CHECK(state.until - t0 == 15min);
  CHECK(state.asked == 3h);
  CHECK(sentence("api.test", state, t0, UtcTime(36000s)) ==
        "api.test is cooling down after 429 Too Many Requests: 15 min left, until 10:15:00 UTC; "
        "the origin asked for 3 h, a probe will ask again");
}

TEST_CASE("breaker: a new time never shortens the one that stands") {
  auto state = observe(rules, {}, t0, outcome(Kind::rate_limited, 429, {}, 60s), no_jitter);
  const auto shorter =
      observe(rules, state, t0 + 1s, outcome(Kind::rate_limited, 429, {}, 5s), no_jitter);
  CHECK(shorter.until == t0 + 60s);
  const auto longer =
      observe(rules, state, t0 + 1s, outcome(Kind::rate_limited, 429, {}, 90s), no_jitter);
  CHECK(longer.until == t0 + 91s);
  CHECK(longer.epoch == state.epoch);
  CHECK(longer.counts.trips == 1);
}

TEST_CASE("breaker: jitter only lengthens, and only what is ours") {
  const auto left = [](const Outcome& o, double jitter) {
    return observe(rules, closed_at_epoch(0, 4), t0, o, jitter).until - t0;
  };
  CHECK(left(outcome(Kind::network, 0), 0.0) == 60s);
  CHECK(left(outcome(Kind::network, 0), 0.5) == 63s);
  CHECK(left(outcome(Kind::network, 0), -7.0) == 60s);
  CHECK(left(outcome(Kind::network, 0), 99.0) == 66s);
  CHECK(left(outcome(Kind::rate_limited, 429, {}, 30s), 0.99) == 30s);
  CHECK(longest_cooldown(rules) == 48h + 288min);
}

TEST_CASE("breaker: out of credit is a long cooldown at once") {
  Outcome broke = outcome(Kind::rate_limited, 402);
  broke.no_credit = true;
  const auto state = observe(rules, {}, t0, broke, no_jitter);
  CHECK(state.cause == Cause::no_credit);
  CHECK(state.until - t0 == 1h);
  CHECK(observe(rules, open_state(), t0, broke, no_jitter).until - t0 == 1h);  // late, but longer
}

TEST_CASE("breaker: after a block only a success closes") {
  auto state = observe(rules, {}, t0, outcome(Kind::anti_bot, 403), no_jitter);
  auto step = decide(rules, state, t0 + 1h, {});
  auto after = observe(rules, step.next, t0 + 1h, outcome(Kind::neutral, 403, step.decision.ticket),
                       no_jitter);
  CHECK(after.phase == Phase::half_open);
  CHECK(after.leases.empty());
  step = decide(rules, after, t0 + 1h, {});
  CHECK(step.decision.act == Act::probe);
  after = observe(rules, step.next, t0 + 1h, outcome(Kind::success, 200, step.decision.ticket),
                  no_jitter);
  CHECK(after.phase == Phase::closed);
}

TEST_CASE("breaker: what is decided, by phase and time") {
  struct Row {
    const char* name;
    HostState state;
    Instant now, arrived;
    Act act;
    Instant until;
  };
  const Instant end = t0 + 1min, lease_end = end + 31s;
  const Row rows[] = {
      {"closed", {}, t0, t0, Act::forward, {}},
      {"open, far from its end", open_state(), t0, t0, Act::refuse, end},
      {"open, just too far", open_state(), end - 15s - 1us, end - 15s - 1us, Act::refuse, end},
      {"open, near its end", open_state(), end - 15s, end - 15s, Act::hold, end},
      {"open, near, but has waited", open_state(), end - 1s, end - 20s, Act::refuse, end},
      {"open, at its end", open_state(), end, end, Act::probe, end + 30s},
      {"open, its end long gone", open_state(), end + 1000h, end, Act::probe, end + 1000h + 30s},
      {"half-open, new", half_open_state(), end + 1s, end + 1s, Act::hold, end + 16s},
      {"half-open, has waited", half_open_state(), end + 16s, end + 1s, Act::refuse, lease_end},
      {"half-open, lease about to end", half_open_state(), lease_end - 1us, lease_end - 1us,
       Act::hold, lease_end},
      {"half-open, lease over", half_open_state(), lease_end, lease_end, Act::probe,
       lease_end + 30s},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto step = decide(rules, row.state, row.now, {.arrived = row.arrived});
    CHECK(step.decision.act == row.act);
    CHECK(step.decision.until == row.until);
    CHECK(step.next.counts == row.state.counts);  // whoever tells the client counts
    CHECK((step.decision.ticket.lease != 0) == (row.act == Act::probe));
  }
}

TEST_CASE("breaker: as many probes at once as the policy says, and as many successes") {
  Rules careful;
  careful.breaker.trial_calls = 2;
  careful.breaker.successes_to_close = 3;
  HostState state = open_state();
  const Instant now = state.until;
  const auto ask = [&] {
    auto step = decide(careful, state, now, {.arrived = now});
    state = step.next;
    return step.decision;
  };
  const auto first = ask(), second = ask();
  CHECK(first.ticket == Ticket{1, 1});
  CHECK(second.ticket == Ticket{1, 2});
  CHECK(ask().act == Act::hold);
  const auto succeed = [&](Ticket t) {
    state = observe(careful, state, now, outcome(Kind::success, 200, t), no_jitter);
  };
  succeed(first.ticket);
  CHECK(state.phase == Phase::half_open);
  const auto third = ask();
  CHECK(third.act == Act::probe);
  succeed(second.ticket);
  CHECK(state.phase == Phase::half_open);
  succeed(third.ticket);
  CHECK(state.phase == Phase::closed);
}

TEST_CASE("breaker: the operator's word") {
  auto state = operator_open(open_state(), t0, 10min, "maintenance");
  CHECK(state.until == t0 + 10min);
  CHECK(state.epoch == 2);
  CHECK(sentence("api.test", state, t0, UtcTime(36000s)) ==
        "api.test is cooling down after an operator shut it (maintenance): 10 min left, until "
        "10:10:00 UTC");
  CHECK(operator_open(state, t0, 5s, "").until == t0 + 5s);  // may shorten
  CHECK(operator_open(state, t0, Duration(-1), "").until == t0);
  CHECK(operator_open(state, t0, 1s, std::string(999, 'x')).reason.size() == HostState::max_reason);
  state = operator_close(state, t0 + 1s);
  CHECK(state.phase == Phase::closed);
  CHECK(state.level == 0);
  CHECK(state.closed_at == t0 + 1s);
  CHECK(decide(rules, state, t0 + 1s, {}).decision.act == Act::forward);
}

TEST_CASE("breaker: a late block is no news inside a longer cooldown") {
  const auto state = operator_open({}, t0, 100h, "maintenance");
  auto after = observe(rules, state, t0 + 1s, outcome(Kind::anti_bot, 403), no_jitter);
  after.counts = state.counts;
  CHECK(after == state);
}

TEST_CASE("breaker: what must be durable first") {
  const HostState open = open_state();
  CHECK(tightens({}, open));
  CHECK(tightens(open, half_open_state()));  // the lease
  CHECK_FALSE(tightens(open, open));
  CHECK_FALSE(tightens(open, operator_close(open, t0)));
  CHECK_FALSE(tightens({}, observe(rules, {}, t0, outcome(Kind::success, 200), no_jitter)));
  CHECK(tightens(open,
                 observe(rules, open, t0, outcome(Kind::rate_limited, 429, {}, 5min), no_jitter)));
}

TEST_CASE("sentence: one for every cause and phase") {
  const UtcTime ten{36000s};
  HostState state = open_state();
  const auto say = [&](Cause cause, std::uint16_t status) {
    state.cause = cause;
    state.status = status;
    return sentence("h", state, t0, ten);
  };
  const std::string tail = ": 1 min left, until 10:01:00 UTC";
  CHECK(say(Cause::named_time, 429) == "h is cooling down after 429 Too Many Requests" + tail);
  CHECK(say(Cause::consecutive, 0) ==
        "h is cooling down after failures in a row, the last of them a network failure" + tail);
  CHECK(say(Cause::window, 429) ==
        "h is cooling down after too many failures, the last of them 429 Too Many Requests" + tail);
  CHECK(say(Cause::anti_bot, 200) ==
        "h is cooling down after an anti-bot answer with status 200 OK" + tail);
  CHECK(say(Cause::probe_failed, 599) == "h is cooling down after a probe that met 599" + tail);
  CHECK(say(Cause::operator_act, 0) == "h is cooling down after an operator shut it" + tail);
  CHECK(say(Cause::no_credit, 402) ==
        "h is cooling down after 402 Payment Required (out of credit)" + tail);
  CHECK(sentence("h", {}, t0, ten) == "h lets requests through");
  CHECK(sentence("h", open_state(), t0 + 1min, ten) ==
        "h waits for a probe after failures in a row, the last of them 500 Internal Server Error");
  CHECK(sentence("h", half_open_state(), t0 + 1min, ten) ==
        "h is being probed after failures in a row, the last of them 500 Internal Server Error");
}

TEST_CASE("sentence: the time of day, with its date when that is far") {
  CHECK(clock_time(UtcTime(36131s), UtcTime(36000s)) == "10:02:11 UTC");
  CHECK(clock_time(UtcTime(36130s + 1us), UtcTime(36000s)) == "10:02:11 UTC");
  CHECK(clock_time(UtcTime(1773309600s), UtcTime(36000s)) == "2026-03-12 10:00:00 UTC");
}

TEST_CASE("breaker: refusals that were on their way together") {
  struct Row {
    const char* name;
    Adapt adapt;
    bool no_credit;
    Phase after;
  };
  const Row rows[] = {{"a pacer learns: one event", Adapt::learned, false, Phase::closed},
                      {"nothing learns: each counts", Adapt::off, false, Phase::open},
                      {"by a step for each: each counts", Adapt::linear, false, Phase::open},
                      {"out of money is no echo", Adapt::learned, true, Phase::open}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Rules some;
    some.pace.adapt = row.adapt;
    HostState state;
    for (int i = 0; i < 4; ++i) {
      Outcome refusal = outcome(Kind::rate_limited, 429, {state.epoch, 0});
      refusal.sent = t0;
      refusal.no_credit = row.no_credit && i == 3;
      state = observe(some, state, t0 + 1s + i * 1ms, refusal, no_jitter);
    }
    CHECK(state.phase == row.after);
    CHECK(state.counts.trips == (row.after == Phase::open ? 1 : 0));  // the ladder is climbed once
  }
}

TEST_CASE("breaker: a policy that shuts at the first refusal means it") {
  Rules strict;
  strict.breaker.window.failures = 1;
  HostState state;
  for (int i = 0; i < 1000; ++i)
    state = observe(strict, state, t0, outcome(Kind::success, 200), no_jitter);
  state = observe(strict, state, t0, outcome(Kind::rate_limited, 429), no_jitter);
  CHECK(phase_at(state, t0) == Phase::open);
}
