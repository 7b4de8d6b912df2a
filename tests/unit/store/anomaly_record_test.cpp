// The anomalies that commands see: round trips, bytes of nobody's making, and leftovers.
#include "store/anomaly_record.h"

#include <doctest/doctest.h>

#include "store/memory.h"
#include "store/sweep.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

ClockPair clock(Duration since) { return {Instant{100h} + since, kNoon + since, 7}; }

const std::vector<NotedAnomaly> some{
    {AnomalyKind::burst, AnomalyAction::throttle, "a.test", "a burst", kNoon - 60s},
    {AnomalyKind::off_hours, AnomalyAction::open, "b.test:8080", "at night", kNoon - 1h}};

std::string record_of(Store& store) {
  const auto read = store.get(std::string(kAnomalyPrefix) + "p");
  REQUIRE(read);
  return read->value.value_or("");
}

}  // namespace

TEST_CASE("anomaly record: comes back as it was") {
  MemoryStore store;
  save_anomalies(store, "p", some, clock(0s), {});
  const auto loaded = load_anomalies(store, clock(1s));
  REQUIRE(loaded);
  CHECK(*loaded == some);
  save_anomalies(store, "p", {}, clock(2s), {});
  CHECK(record_of(store).empty());
}

TEST_CASE("anomaly record: cut or changed bytes are nobody's word") {
  MemoryStore store;
  save_anomalies(store, "p", some, clock(0s), {});
  const std::string whole = record_of(store);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    store.put(std::string(kAnomalyPrefix) + "p", whole.substr(0, size), {});
    const auto loaded = load_anomalies(store, clock(0s));
    REQUIRE(loaded);
    CHECK(loaded->empty());
  }
}

TEST_CASE("anomaly record: what a crash left is over, and is swept away") {
  MemoryStore store;
  save_anomalies(store, "p", some, clock(0s), {});
  for (const Duration later : {kAnomaliesHold + 1s, -kAnomaliesHold - 1s}) {
    CHECK(load_anomalies(store, clock(later))->empty());
  }
  Sweep sweep(store);
  CHECK(*sweep.step(clock(1min), 24h, 100) == 0);
  CHECK(*sweep.step(clock(1h), 24h, 100) == 1);
  CHECK(record_of(store).empty());
}
