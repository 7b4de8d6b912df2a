#include "store/limit_record.h"

#include <doctest/doctest.h>

#include "store/memory.h"
#include "store/sweep.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

const std::vector<RequestLimit> limits{{3, 1h}};

ClockPair clock(Duration since, std::uint64_t boot = 7, Duration wall_jump = 0s) {
  return {Instant{100h} + since, kNoon + since + wall_jump, boot};
}

std::uint64_t reserve_one(Store& store, const ClockPair& now) {
  const auto granted = wait_for([&](Completion done) {
    reserve_requests(store, "k", limits, {now, 0s, 1, true}, std::move(done));
  });
  REQUIRE(granted);
  return *granted;
}

}  // namespace

TEST_CASE("limit record: what each clock can do to a window") {
  struct Row {
    const char* name;
    ClockPair later;
    bool free;
  };
  // Full at 0 h.
  const Row rows[] = {
      {"59 minutes later", clock(59min), false},
      {"an hour later", clock(60min), true},
      {"same boot, the wall clock went ahead", clock(30min, 7, 100h), false},
      {"same boot, the wall clock went back", clock(60min, 7, -100h), true},
      {"after a reboot, half an hour", {Instant{1min}, kNoon + 30min, 8}, false},
      {"after a reboot, an hour", {Instant{1min}, kNoon + 60min, 8}, true},
      {"after a reboot, and the wall clock went back", {Instant{1min}, kNoon - 100h, 8}, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    MemoryStore store;
    for (int i = 0; i < 3; ++i) REQUIRE(reserve_one(store, clock(0s)) == 1);
    REQUIRE(reserve_one(store, clock(0s)) == 0);
    CHECK(reserve_one(store, row.later) == (row.free ? 1 : 0));
  }
}

TEST_CASE("limit record: a wall clock that went back over a reboot stretches by a minute at most") {
  MemoryStore store;
  for (int i = 0; i < 3; ++i) REQUIRE(reserve_one(store, clock(0s)) == 1);
  const ClockPair early{Instant{1min}, kNoon - 100h, 8};
  const auto history = limit_history(store, "k", early);
  REQUIRE(history);
  CHECK(next_free(limits, *history, early.mono) <= early.mono + 61min);
}

TEST_CASE("limit record: a writer that asked earlier moves nobody's moments") {
  MemoryStore store;
  REQUIRE(reserve_one(store, clock(10s)) == 1);
  for (int i = 0; i < 2; ++i) REQUIRE(reserve_one(store, clock(0s)) == 1);
  const auto history = limit_history(store, "k", clock(20s));
  REQUIRE(history);
  CHECK(used(*history, 1h, clock(1h + 9s).mono) >= 1);
  CHECK(used(*history, 1h, clock(1h + 10s).mono) == 0);
}

TEST_CASE("limit record: bytes that nobody can read are a full window") {
  MemoryStore store;
  REQUIRE(put(store, "limit/k", "garbage"));
  CHECK(reserve_one(store, clock(0s)) == 0);
  CHECK_FALSE(limits_are_over("garbage", clock(1000h)));
}

TEST_CASE("limit record: encoded and back, and cut short anywhere") {
  const LimitHistory history{{1h, {{clock(-5s).mono, clock(2s).mono, 12}}},
                             {24h, {{clock(-3h).mono, clock(-2h).mono, 7}}}};
  const std::string bytes = encode_limits(history, clock(0s));
  const auto read = decode_limits(bytes, clock(30s));
  REQUIRE(read);
  CHECK(*read == history);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(decode_limits(std::string_view(bytes).substr(0, size), clock(0s)));
  }
}

TEST_CASE("limit record: swept when nothing in it counts any more") {
  MemoryStore store;
  REQUIRE(reserve_one(store, clock(0s)) == 1);
  Sweep sweep(store);
  REQUIRE(sweep.step(clock(59min), 24h, 100));
  CHECK(store.get("limit/k")->value.has_value());
  REQUIRE(sweep.step(clock(61min), 24h, 100));
  CHECK_FALSE(store.get("limit/k")->value.has_value());
}
