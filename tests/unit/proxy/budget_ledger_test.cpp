// The budget over a store: blocks ahead, marks, corrections, and a race of killed processes.
#include "proxy/budget_ledger.h"

#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "proxy/config_reader.h"
#include "store/counter.h"
#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

using Kind = BudgetLedger::Answer::Kind;

// 10 a day: 8 may be spent, in blocks of 0.04.
BudgetConfig ten_a_day() {
  BudgetConfig config;
  config.daily = 10;
  return config;
}

constexpr Micros kMost = 8'000'000;
constexpr Micros kBlock = 40'000;

Micros reserved_today(Store& store, UtcTime now = kNoon) {
  const auto states = budget_states(store, ten_a_day(), Zone(), now);
  REQUIRE(states);
  return states->day.reserved;
}

std::vector<std::string> events_of(Store& store) {
  std::vector<std::string> texts;
  const auto events = store.events(0, 100);
  REQUIRE(events);
  for (const StoredEvent& stored : *events) texts.push_back(stored.event.text);
  return texts;
}

}  // namespace

TEST_CASE("budget: to the stop mark and not a millionth further") {
  MemoryStore store;
  BudgetLedger ledger(store, ten_a_day(), Zone(), {});
  Micros spent = 0;
  for (const Micros price : {Micros{30'000}, Micros{7'777}, Micros{1}}) {
    while (ledger.take(price, kNoon).kind == Kind::go) spent += price;
  }
  CHECK(spent == kMost);
  const auto answer = ledger.take(1, kNoon);
  CHECK(answer.kind == Kind::stopped);
  CHECK(answer.until == kNoon + 12h);
  CHECK(answer.why == "the daily budget of 10.00 USD is used up to its stop mark of 80 %");
  CHECK(ledger.take(0, kNoon).kind == Kind::go);
  CHECK(ledger.take(1, kNoon + 12h).kind == Kind::go);  // the next day
}

TEST_CASE("budget: a price that is larger than what is left, and a smaller one that is not") {
  MemoryStore store;
  BudgetLedger ledger(store, ten_a_day(), Zone(), {});
  REQUIRE(ledger.take(7'990'000, kNoon).kind == Kind::go);
  CHECK(ledger.take(20'000, kNoon).kind == Kind::stopped);
  CHECK(ledger.take(10'000, kNoon).kind == Kind::go);
  CHECK(ledger.take(1, kNoon).kind == Kind::stopped);
}

TEST_CASE("budget: the month stops what the day would allow") {
  MemoryStore store;
  BudgetConfig config = ten_a_day();
  config.monthly = 12.5;  // 10 may be spent
  BudgetLedger ledger(store, config, Zone(), {});
  UtcTime now = kNoon;
  Micros spent = 0;
  while (ledger.take(10'000, now).kind == Kind::go) spent += 10'000;
  CHECK(spent == kMost);
  now += 24h;
  while (ledger.take(10'000, now).kind == Kind::go) spent += 10'000;
  CHECK(spent == 10'000'000);
  const auto answer = ledger.take(10'000, now);
  CHECK(answer.why.find("monthly") != std::string::npos);
  CHECK(answer.until ==
        UtcTime{std::chrono::sys_days(std::chrono::year(2026) / 4 / 1).time_since_epoch()});
  const auto states = budget_states(store, config, Zone(), now);
  REQUIRE(states);
  CHECK(states->day.reserved == 2'000'000);  // what the month refused went back
  CHECK(states->month.reserved == 10'000'000);
}

TEST_CASE("budget: given back and corrected") {
  MemoryStore store;
  BudgetLedger ledger(store, ten_a_day(), Zone(), {});
  const auto taken = ledger.take(10'000, kNoon);
  Micros spent = 0;
  SUBCASE("nothing was sent") { ledger.give_back(taken, kNoon); }
  SUBCASE("cheaper") { ledger.correct(taken, spent = 4'000, kNoon); }
  SUBCASE("dearer") { ledger.correct(taken, spent = 25'000, kNoon); }
  SUBCASE("dearer than the block") { ledger.correct(taken, spent = 900'000, kNoon); }
  SUBCASE("beyond the limit: it is spent all the same") {
    ledger.correct(taken, spent = 20'000'000, kNoon);
    CHECK(ledger.take(1, kNoon).kind == Kind::stopped);
  }
  ledger.close(kNoon);
  CHECK(reserved_today(store) == spent);
}

TEST_CASE("budget: a new day gives the rest of the block back, to the month too") {
  MemoryStore store;
  BudgetConfig config = ten_a_day();
  config.monthly = 100;
  BudgetLedger ledger(store, config, Zone(), {});
  const auto taken = ledger.take(1'000, kNoon);
  REQUIRE(ledger.take(2'000, kNoon + 24h).kind == Kind::go);
  ledger.give_back(taken, kNoon + 24h);  // of a day that is over: it counts as spent
  ledger.close(kNoon + 24h);
  const auto states = budget_states(store, config, Zone(), kNoon + 24h);
  REQUIRE(states);
  CHECK(states->day.reserved == 2'000);
  CHECK(states->month.reserved == 3'000);
}

TEST_CASE("budget: each mark is told once, by one of all") {
  MemoryStore store;
  BudgetLedger one(store, ten_a_day(), Zone(), {}), two(store, ten_a_day(), Zone(), {});
  int turn = 0;
  while ((turn++ % 2 ? one : two).take(10'000, kNoon).kind == Kind::go) {}
  const auto texts = events_of(store);
  REQUIRE(texts.size() == 2);
  CHECK(texts[0] == "the daily budget of 10.00 USD is used to 50 %");
  CHECK(texts[1] == "the daily budget of 10.00 USD is used up to its stop mark of 80 %");
}

TEST_CASE("budget: without one, nobody asks the store") {
  MemoryStore store;
  BudgetLedger ledger(store, {}, Zone(), {});
  CHECK(ledger.take(1'000'000'000, kNoon).kind == Kind::go);
  CHECK(store.version() == 1);
}

TEST_CASE("budget: as sluice.toml says") {
  const auto read = [](const std::string& text) {
    return read_config_text("[budget]\n" + text, "f");
  };
  const auto loaded = read(
      "daily = 10\nmonthly = 200.5\ncurrency = \"EUR\"\nreset = \"06:30\"\nzone = "
      "\"Europe/Berlin\"\n");
  REQUIRE(loaded.problems.empty());
  CHECK(loaded.config.budget.monthly == 200.5);
  CHECK(loaded.config.budget.reset == 6h + 30min);
  for (const char* wrong : {"reset = \"24:00\"", "reset = \"6:30\"", "zone = \"Mars\"",
                            "daily = -1", "alert_at = 0.9", "currency = \"\"", "stop_at = 1.5"}) {
    CAPTURE(wrong);
    CHECK(read(wrong).problems.size() == 1);
  }
}

// 64 clients in 2 processes, killed at random and started again: every millionth is reported over a
// pipe after it was taken, as an origin would see it, and never more than the stop mark arrives.
TEST_CASE("budget: raced by processes that are killed, never exceeded") {
  const TempDirectory directory;
  constexpr Micros kPrice = 7'919;
  const auto client = [&](Line line) {
    const auto opened = open_or_die(directory.path());
    BudgetLedger ledger(*opened.store, ten_a_day(), Zone(), {});
    std::vector<std::thread> threads;
    for (int i = 0; i < 32; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const auto answer = ledger.take(kPrice, kNoon);
          if (answer.kind == Kind::stopped) return;
          if (answer.kind != Kind::go) {
            std::this_thread::yield();
          } else if (!line.tell(1)) {
            return;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return 0;
  };
  std::mt19937 random(1);
  Micros seen = 0;
  int crashes = 0;
  for (;;) {
    Child first(client), second(client);
    const Micros until = seen + kPrice * static_cast<Micros>(20 + random() % 200);
    bool first_open = true, second_open = true;
    while (seen < until && (first_open || second_open)) {
      if (first_open) first_open = first.line().hear().has_value();
      if (second_open) second_open = second.line().hear().has_value();
      seen += kPrice * (first_open + second_open);
    }
    if (!first_open && !second_open) break;
    first.kill();
    second.kill();
    while (first.line().hear()) seen += kPrice;  // what was on its way
    while (second.line().hear()) seen += kPrice;
    crashes += 2;
  }
  CHECK(crashes >= 4);
  CHECK(seen <= kMost);
  // Each crash wastes a block at most, and what 32 threads had taken and not yet said. The two that
  // ended well hold less than a price each.
  CHECK(seen + crashes * (kBlock + 32 * kPrice) + 2 * kBlock >= kMost);
}
