// What two processes know about one key, put together: who changed what, and what holds then.
#include "policy/host_merge.h"

#include <doctest/doctest.h>

#include "policy/breaker.h"

using namespace sluice;

namespace {

constexpr Instant t0{500h};
const Rules rules;

Outcome refusal(std::optional<Duration> wait, std::uint64_t epoch) {
  Outcome out;
  out.kind = OutcomeKind::rate_limited;
  out.status = 429;
  out.wait = wait;
  out.ticket.epoch = epoch;
  return out;
}

HostState opened(HostState state, Duration length, Instant now = t0) {
  const auto epoch = state.epoch;
  return observe(rules, std::move(state), now, refusal(length, epoch), 0.0);
}

HostState counted(HostState state, std::uint64_t refused) {
  state.counts.refused += refused;
  return state;
}

}  // namespace

TEST_CASE("merge: what is usual is what both have seen") {
  HostState base, ours, stored;
  note_rate(ours.usual, UtcTime{480'000h}, 7);
  note_rate(stored.usual, UtcTime{480'000h}, 9);
  CHECK(merged(base, ours, stored).usual.peak == 9);
  CHECK(merged(base, stored, ours).usual.peak == 9);
  CHECK(merged(base, ours, base).usual == ours.usual);
}

TEST_CASE("merge: a pause stands unless somebody has lifted it") {
  HostState base, paused, busy;
  paused.pace.hold = t0 + 5min;
  busy.pace.learned_at = t0 + 1s;  // knows more, but not this
  CHECK(merged(base, paused, busy).pace.hold == t0 + 5min);
  CHECK(merged(base, busy, paused).pace.hold == t0 + 5min);
  CHECK(merged(paused, busy, paused).pace.hold == Instant{});
}

TEST_CASE("merge: who changed the breaker since both read it") {
  const HostState closed;
  const HostState open = opened(closed, 10min);
  const HostState cleared = operator_close(open, t0 + 1s);
  const HostState by_hand = operator_open(open, t0 + 1s, 2s, "");
  const HostState probed = decide(rules, open, open.until, {open.until}).next;
  const HostState failed =
      observe(rules, probed, open.until + 1s,
              {.kind = OutcomeKind::server_error, .status = 500, .ticket = {probed.epoch, 1}}, 0.0);
  struct Row {
    const char* name;
    const HostState &base, ours, stored, holds;
  };
  const Row rows[] = {
      {"nobody", open, open, open, open},
      {"only we: shut", closed, open, closed, open},
      {"only they: shut", closed, closed, open, open},
      {"only they: an operator cleared it", open, counted(open, 3), cleared, cleared},
      {"only they: an operator shut it for less", open, counted(open, 3), by_hand, by_hand},
      {"only they: a probe", open, counted(open, 1), probed, probed},
      {"only we: cleared", open, cleared, open, cleared},
      {"both: cleared, and shut by a later answer", cleared, opened(cleared, 5min, t0 + 2s),
       counted(cleared, 1), opened(cleared, 5min, t0 + 2s)},
      {"both: their probe, and ours that failed", open, failed, probed, failed},
      {"both: cleared, and ours is older", open, opened(open, 14min, t0), cleared, cleared},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const HostState out = merged(row.base, row.ours, row.stored);
    CHECK(out.phase == row.holds.phase);
    CHECK(out.until == row.holds.until);
    CHECK(out.epoch == row.holds.epoch);
    CHECK(out.cause == row.holds.cause);
    CHECK(out.leases == row.holds.leases);
    CHECK(out.level == row.holds.level);
  }
}

TEST_CASE("merge: two that shut it keep the later end, in either order") {
  const HostState base;
  const HostState early = opened(base, 1min), late = opened(base, 9min);
  CHECK(merged(base, early, late).until == late.until);
  CHECK(merged(base, late, early).until == late.until);
}

TEST_CASE("merge: what both have counted is added, once") {
  HostState base;
  base.version = 4;
  base.counts.success = 10;
  HostState ours = base, stored = base;
  ours.counts.success = 13;
  ours.counts.trips = 1;
  stored.counts.success = 15;
  stored.version = 6;
  const HostState out = merged(base, ours, stored);
  CHECK(out.counts.success == 18);
  CHECK(out.counts.trips == 1);
  CHECK(out.version == 6);
  CHECK(merged(stored, stored, stored) == stored);
}

TEST_CASE("merge: evidence of both counts while the key is closed") {
  HostState base;
  base.window = {t0};
  base.consecutive = 1;
  HostState ours = base, stored = base;
  ours.window.push_back(t0 + 2s);
  ours.consecutive = 2;
  stored.window.push_back(t0 + 1s);
  stored.consecutive = 4;
  const HostState out = merged(base, ours, stored);
  CHECK(out.window == std::vector<Instant>{t0, t0 + 1s, t0 + 2s});
  CHECK(out.consecutive == 4);

  ours.consecutive = 0;  // a success since
  stored.consecutive = base.consecutive;
  CHECK(merged(base, ours, stored).consecutive == 0);

  HostState many = base;
  for (int i = 1; i <= 200; ++i) many.window.push_back(t0 + i * 1s);
  many.window.erase(many.window.begin(), many.window.end() - HostState::max_window);
  CHECK(merged(base, many, stored).window.size() == HostState::max_window);
}

TEST_CASE("merge: learned pace is whose it was, or the slower of both") {
  HostState base;
  base.pace.delay = 1s;
  HostState ours = base, stored = base;
  stored.pace.delay = 5s;
  CHECK(merged(base, ours, stored).pace == stored.pace);
  CHECK(merged(base, stored, ours).pace == stored.pace);
  ours.pace.delay = 2s;
  ours.pace.learned_at = t0;
  ours.pace.count = 30;
  const HostState out = merged(base, ours, stored);
  CHECK(out.pace.delay == 5s);
  CHECK(out.pace.count == 30);
}
