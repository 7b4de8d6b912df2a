// What is told survives a restart, whatever the clocks do and whatever the bytes are.
#include "store/alert_record.h"

#include <doctest/doctest.h>

#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

const ClockPair kNow{Instant{std::chrono::hours(100)}, kNoon, 42};

ClockPair later(Duration mono, Duration utc) { return {kNow.mono + mono, kNow.utc + utc, 42}; }

Outbox some() {
  Outbox box;
  box.cursor = 17;
  box.waiting = {
      {{AlertKind::slow_open, "a.test", "a.test is shut", kNoon - 1min, 3}, kNow.mono - 1min},
      {{AlertKind::stop, "", "stopped", kNoon, 1}, kNow.mono}};
  box.told = {{0xdeadbeefcafe, kNow.mono - 2min}};
  box.more = 9;
  box.more_since = kNow.mono - 3min;
  return box;
}

void save(Store& store, const Outbox& box) {
  const auto saved =
      wait_for([&](Completion done) { save_outbox(store, "webhook", box, kNow, std::move(done)); });
  REQUIRE(saved);
}

std::optional<Outbox> load(Store& store, const ClockPair& now = kNow) {
  const auto loaded = load_outbox(store, "webhook", now);
  REQUIRE(loaded);
  return *loaded;
}

}  // namespace

TEST_CASE("alert record: through the store and back") {
  MemoryStore store;
  CHECK_FALSE(load(store));
  save(store, some());
  CHECK(load(store) == some());
}

TEST_CASE("alert record: after a restart everything is as old as it is") {
  MemoryStore store;
  save(store, some());
  const ClockPair now = later(-50h, 10min);  // another boot
  const auto box = load(store, now);
  REQUIRE(box);
  CHECK(now.mono - box->waiting[0].since == 11min);
  CHECK(now.mono - box->told[0].at == 12min);
  CHECK(now.mono - box->more_since == 13min);
}

TEST_CASE("alert record: a wall clock that was set back makes nothing younger than now") {
  MemoryStore store;
  save(store, some());
  const ClockPair now = later(1s, -24h);
  const auto box = load(store, now);
  REQUIRE(box);
  CHECK(box->waiting[0].since == now.mono);
  CHECK(box->told[0].at == now.mono);
}

TEST_CASE("alert record: the largest fits") {
  MemoryStore store;
  const AlertRules rules;
  Outbox box;
  for (std::size_t i = 0; i < 2 * rules.most_waiting; ++i) {
    const std::string number = std::to_string(i);
    take(rules, box,
         {AlertKind::anomaly, number + std::string(1000, 'k'), number + std::string(5000, 's'),
          kNoon, 1},
         kNow.mono);
  }
  box.told.assign(Outbox::max_told, {~std::uint64_t{0}, kNow.mono});
  save(store, box);
  CHECK(load(store) == box);
}

TEST_CASE("alert record: damage is no record") {
  MemoryStore store;
  save(store, some());
  const std::string whole = *store.get("alerts/webhook")->value;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(i);
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    REQUIRE(put(store, "alerts/webhook", flipped));
    CHECK_FALSE(load(store));
    REQUIRE(put(store, "alerts/webhook", whole.substr(0, i)));
    CHECK_FALSE(load(store));
  }
}
