// The table of gates: that every key has one gate for as long as it is used, whatever comes and
// goes around it.
#include "proxy/governor/gate_table.h"

#include <doctest/doctest.h>

#include <set>

using namespace sluice;

namespace {

constexpr Instant kNow{100h};

std::string key(int i) { return "host" + std::to_string(i) + ".test"; }

}  // namespace

TEST_CASE("gate table: one gate per key, however many there are") {
  GateTable table(nullptr, nullptr);
  CHECK(table.find("nobody.test") == nullptr);
  constexpr int kMany = 5000;
  for (int i = 0; i < kMany; ++i) table.find_or_make(key(i));
  CHECK(table.size() == kMany);
  std::set<const Gate*> gates;
  for (int i = 0; i < kMany; ++i) {
    const auto gate = table.find(key(i));
    REQUIRE(gate);
    CHECK(gate->key() == key(i));
    CHECK(table.find_or_make(key(i)) == gate);
    gates.insert(gate.get());
  }
  CHECK(gates.size() == kMany);
  CHECK(table.find(key(kMany)) == nullptr);
  std::set<std::string> visited;
  table.for_each([&](Gate& gate) { visited.insert(gate.key()); });
  CHECK(visited.size() == kMany);
}

TEST_CASE(
    "gate table: an idle gate goes, one that somebody holds stays, and all others are found") {
  GateTable table(nullptr, nullptr);
  std::vector<std::shared_ptr<Gate>> held;
  for (int i = 0; i < 1000; ++i) {
    auto gate = table.find_or_make(key(i));
    if (i % 3 == 0) held.push_back(std::move(gate));
  }
  table.remove_idle(kNow, 10min);
  CHECK(table.size() == held.size());
  for (const auto& gate : held) CHECK(table.find(gate->key()) == gate);
  CHECK(table.find(key(1)) == nullptr);
  for (int i = 0; i < 1000; ++i) table.find_or_make(key(i));
  CHECK(table.size() == 1000);
  held.clear();
  table.remove_idle(kNow, 10min);
  CHECK(table.size() == 0);
}
