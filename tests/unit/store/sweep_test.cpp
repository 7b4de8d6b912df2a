// The store does not grow for ever, and nobody who is shut out is let in by tidying up.
#include "store/sweep.h"

#include <doctest/doctest.h>

#include "policy/breaker.h"
#include "store/counter.h"
#include "store/hosts.h"
#include "store/lease.h"
#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

const ClockPair kNow{Instant{std::chrono::hours(1000)}, kNoon, 42};
constexpr Duration kAge = 24h;

ClockPair later(Duration time) { return {kNow.mono + time, kNow.utc + time, 42}; }

void save(Store& store, const std::string& key, const HostState& state, const ClockPair& now) {
  REQUIRE(wait_for([&](Completion done) { save_host(store, key, state, now, std::move(done)); }));
}

HostState shut_for(Duration length, Cause cause = Cause::named_time) {
  HostState state;
  state.phase = Phase::open;
  state.cause = cause;
  state.until = kNow.mono + length;
  return state;
}

std::size_t sweep_all(Store& store, const ClockPair& now) {
  Sweep sweep(store);
  return *sweep.step(now, kAge, kMaxPageEntries);
}

}  // namespace

TEST_CASE("sweep: what is removed, and when") {
  struct Row {
    const char* name;
    HostState state;
    Duration kept, gone;  // still there at the one, removed at the other
  };
  HostState half_open = shut_for(-1h);
  half_open.phase = Phase::half_open;
  HostState wary, blocked, banned;
  wary.level = 5;
  blocked.antibot_level = 1;
  banned.pace.ban = true;
  const Row rows[] = {
      {"closed", HostState{}, kAge - 1us, kAge},
      {"open for a minute", shut_for(1min), kAge + 1min - 1us, kAge + 1min},
      {"open for a month", shut_for(720h), 743h, 744h},
      {"by an operator, for a year", shut_for(8760h, Cause::operator_act), 8783h, 8784h},
      {"closed, its level not yet decayed", wary, 90 * 24h - 1us, 90 * 24h},
      {"closed after a block", blocked, 90 * 24h - 1us, 90 * 24h},
      {"closed after a ban", banned, 90 * 24h - 1us, 90 * 24h},
      {"half-open", half_open, kAge - 1us, kAge},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    MemoryStore store;
    save(store, "a", row.state, kNow);
    CHECK(sweep_all(store, later(row.kept)) == 0);
    CHECK(value_of(store, "host/a") != "(none)");
    CHECK(sweep_all(store, later(row.gone)) == 1);
    CHECK(value_of(store, "host/a") == "(none)");
  }
}

TEST_CASE("sweep: counters and leases that are over go, everything unknown stays") {
  MemoryStore store;
  REQUIRE(wait_for(
      [&](Completion done) { reserve(store, "c", 1, 9, kNow.utc + 1h, std::move(done)); }));
  REQUIRE(
      wait_for([&](Completion done) { take_lease(store, "l", "me", kNow, 1h, std::move(done)); }));
  for (const char* key : {"host/damaged", "later/x", "sluice/trial"}) REQUIRE(put(store, key, "?"));
  CHECK(sweep_all(store, later(59min)) == 0);
  CHECK(sweep_all(store, later(1h)) == 2);
  CHECK(sweep_all(store, later(10'000h)) == 0);
  CHECK(store.scan("", "", 10)->entries.size() == 3);
}

TEST_CASE("sweep: a wall clock that jumps ahead removes nothing within a boot") {
  MemoryStore store;
  save(store, "a", shut_for(1h), kNow);
  ClockPair jumped = later(1min);
  jumped.utc += std::chrono::hours(24 * 365);
  CHECK(sweep_all(store, jumped) == 0);
}

TEST_CASE("sweep: what was written to meanwhile stays") {
  // A store in which another process opens the host between the look and the removal.
  class Late : public MemoryStore {
   public:
    void update(std::string key, Edit edit, Completion done) override {
      if (meanwhile) std::exchange(meanwhile, nullptr)();
      MemoryStore::update(std::move(key), std::move(edit), std::move(done));
    }
    std::function<void()> meanwhile;
  } store;
  save(store, "a", {}, kNow);
  const ClockPair now = later(48h);
  store.meanwhile = [&] {
    REQUIRE(wait_for([&](Completion done) {
      change_host(
          store, "a", now, 48h,
          [&](HostState state) { return operator_open(std::move(state), now.mono, 10min, ""); },
          std::move(done));
    }));
  };
  sweep_all(store, now);
  CHECK(load_host(store, "a", now, 48h)->state.phase == Phase::open);
}

TEST_CASE("sweep: a step looks at no more than it may, and goes on where it was") {
  MemoryStore store;
  for (int i = 0; i < 100; ++i) save(store, "h" + std::to_string(i), {}, kNow);
  Sweep sweep(store);
  for (int step = 0; step < 10; ++step) CHECK(*sweep.step(later(48h), kAge, 10) == 10);
  CHECK(store.scan("", "", 10)->entries.empty());
  save(store, "new", {}, kNow);
  CHECK(*sweep.step(later(48h), kAge, 10) == 1);  // from the start again
}

TEST_CASE("sweep: new hosts day after day do not grow the store's file for ever") {
  TempDirectory directory;
  auto opened = open_or_die(directory.path());
  Store& store = *opened.store;
  Sweep sweep(store);
  constexpr int kDays = 12, kHosts = 3000;
  std::uintmax_t third_day = 0;
  for (int day = 0; day < kDays; ++day) {
    const ClockPair now = later(day * 24h);
    for (int i = 0; i < kHosts; ++i)
      save_host(store, "d" + std::to_string(day) + "h" + std::to_string(i), {}, now, {});
    for (int step = 0; step < 3 * kHosts / 500; ++step) REQUIRE(sweep.step(now, kAge, 500));
    REQUIRE(put(store, "end of day", ""));
    if (day == 2) third_day = std::filesystem::file_size(directory.data());
  }
  CHECK(std::filesystem::file_size(directory.data()) <= 2 * third_day);
  std::size_t left = 0;
  std::string after;
  for (bool more = true; more;) {
    const auto page = store.scan(kHostPrefix, after, 1000);
    REQUIRE(page);
    left += page->entries.size();
    if (!page->entries.empty()) after = page->entries.back().key;
    more = page->more;
  }
  CHECK(left <= 3 * kHosts);
}
