// The lines of a cost report: added up by several, bounded, and forgotten when they are over.
#include "store/cost_record.h"

#include <doctest/doctest.h>

#include "store/counter.h"
#include "store/memory.h"
#include "store/sweep.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

void add(Store& store, std::vector<CostLine> lines, UtcTime ends = kNoon + 1h) {
  const auto added = wait_for(
      [&](Completion done) { add_costs(store, "day/x/host", lines, ends, std::move(done)); });
  REQUIRE(added);
  CHECK(*added == 1);
}

std::vector<CostLine> lines_of(Store& store) {
  auto lines = load_costs(store, "day/x/host");
  REQUIRE(lines);
  return *lines;
}

}  // namespace

TEST_CASE("costs: added up by name, the dearest first") {
  MemoryStore store;
  CHECK(lines_of(store).empty());
  add(store, {{"a.test", 10, 1}, {"b.test", 30, 1}});
  add(store, {{"a.test", 25, 4}, {"c.test", 0, 2}});
  CHECK(lines_of(store) ==
        std::vector<CostLine>{{"a.test", 35, 5}, {"b.test", 30, 1}, {"c.test", 0, 2}});
}

TEST_CASE("costs: too many names keep their sum, and the dearest their lines") {
  MemoryStore store;
  Micros sum = 0;
  for (int i = 1; i <= 500; ++i) {
    add(store, {{"h" + std::to_string(i), i, 1}});
    sum += i;
  }
  const auto lines = lines_of(store);
  REQUIRE(lines.size() == kMaxCostLines + 1);
  CHECK(lines.front() == CostLine{"h500", 500, 1});
  CHECK(lines.back().name == kOtherCosts);
  CHECK(lines.back().requests == 400);
  for (const CostLine& line : lines) sum -= line.spent;
  CHECK(sum == 0);
}

TEST_CASE("costs: the largest record fits, whatever the names") {
  MemoryStore store;
  std::vector<CostLine> lines;
  for (int i = 0; i < 300; ++i) {
    lines.push_back({std::string(2000, 'x') + std::to_string(i), i, 1});
    lines.back().name.insert(0, std::to_string(i));
  }
  add(store, lines);
  CHECK(lines_of(store).size() == kMaxCostLines + 1);
}

TEST_CASE("costs: a damaged record says so, and the next addition begins anew") {
  MemoryStore store;
  store.put("cost/day/x/host", "rubbish", {});
  CHECK_FALSE(load_costs(store, "day/x/host"));
  add(store, {{"a.test", 1, 1}});
  CHECK(lines_of(store) == std::vector<CostLine>{{"a.test", 1, 1}});
}

TEST_CASE("costs: swept when they are over, not before") {
  MemoryStore store;
  add(store, {{"a.test", 1, 1}}, kNoon + 1h);
  Sweep sweep(store);
  REQUIRE(sweep.step({Instant{1h}, kNoon + 59min, 7}, 24h, 100));
  CHECK(lines_of(store).size() == 1);
  REQUIRE(sweep.step({Instant{2h}, kNoon + 1h, 7}, 24h, 100));
  CHECK(lines_of(store).empty());
}
