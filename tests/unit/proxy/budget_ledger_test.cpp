// The budget over a store: blocks ahead, marks, corrections, and a race of killed processes.
#include "proxy/budget_ledger.h"

#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "proxy/config_reader.h"
#include "proxy/cost_report.h"
#include "proxy/zone_file.h"
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
  const auto report = cost_report(store, ten_a_day(), Zone(), now);
  REQUIRE(report);
  return report->day.used;
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
  BudgetLedger ledger(store, ten_a_day(), Zone(), false, {});
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
  BudgetLedger ledger(store, ten_a_day(), Zone(), false, {});
  REQUIRE(ledger.take(7'990'000, kNoon).kind == Kind::go);
  CHECK(ledger.take(20'000, kNoon).kind == Kind::stopped);
  CHECK(ledger.take(10'000, kNoon).kind == Kind::go);
  CHECK(ledger.take(1, kNoon).kind == Kind::stopped);
}

TEST_CASE("budget: the month stops what the day would allow") {
  MemoryStore store;
  BudgetConfig config = ten_a_day();
  config.monthly = 12.5;  // 10 may be spent
  BudgetLedger ledger(store, config, Zone(), false, {});
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
  const auto report = cost_report(store, config, Zone(), now);
  REQUIRE(report);
  CHECK(report->day.used == 2'000'000);  // what the month refused went back
  CHECK(report->month.used == 10'000'000);
}

TEST_CASE("budget: given back and corrected") {
  MemoryStore store;
  BudgetLedger ledger(store, ten_a_day(), Zone(), false, {});
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
  BudgetLedger ledger(store, config, Zone(), false, {});
  const auto taken = ledger.take(1'000, kNoon);
  REQUIRE(ledger.take(2'000, kNoon + 24h).kind == Kind::go);
  ledger.give_back(taken, kNoon + 24h);  // of a day that is over: it counts as spent
  ledger.close(kNoon + 24h);
  const auto report = cost_report(store, config, Zone(), kNoon + 24h);
  REQUIRE(report);
  CHECK(report->day.used == 2'000);
  CHECK(report->month.used == 3'000);
}

TEST_CASE("budget: each mark is told once, by one of all") {
  MemoryStore store;
  BudgetLedger one(store, ten_a_day(), Zone(), false, {}),
      two(store, ten_a_day(), Zone(), false, {});
  int turn = 0;
  while ((turn++ % 2 ? one : two).take(10'000, kNoon).kind == Kind::go) {}
  const auto texts = events_of(store);
  REQUIRE(texts.size() == 2);
  CHECK(texts[0] == "the daily budget of 10.00 USD is used to 50 %");
  CHECK(texts[1] == "the daily budget of 10.00 USD is used up to its stop mark of 80 %");
}

TEST_CASE("budget: a mark that is passed twice is told once") {
  MemoryStore store;
  BudgetLedger ledger(store, ten_a_day(), Zone(), false, {});
  std::vector<BudgetLedger::Answer> taken;
  for (int round = 0; round < 2; ++round) {
    const UtcTime now = kNoon + round * 2s;
    for (;;) {
      auto answer = ledger.take(100'000, now);
      if (answer.kind != Kind::go) break;
      taken.push_back(std::move(answer));
    }
    CHECK(taken.size() == 80);
    for (; taken.size() > 55; taken.pop_back()) ledger.give_back(taken.back(), now);
  }
  CHECK(events_of(store).size() == 2);
}

TEST_CASE("budget: a stop mark that no double holds exactly") {
  BudgetConfig config = ten_a_day();
  config.daily = 0.1;
  config.stop_at = 0.7;  // the product of the two is a little less than 0.07
  MemoryStore store;
  BudgetLedger ledger(store, config, Zone(), false, {});
  CHECK(ledger.take(70'000, kNoon).kind == Kind::go);
  CHECK(ledger.take(1, kNoon).kind == Kind::stopped);
}

TEST_CASE("budget: without one, nobody asks the store") {
  MemoryStore store;
  BudgetLedger ledger(store, {}, Zone(), false, {});
  CHECK(ledger.take(1'000'000'000, kNoon).kind == Kind::go);
  CHECK(store.scan("", "", 1)->entries.empty());
}

TEST_CASE("budget: asked whether it is used up, it takes nothing") {
  MemoryStore store;
  BudgetLedger ledger(store, ten_a_day(), Zone(), false, {});
  CHECK_FALSE(ledger.stopped(kMost + 1, kNoon));  // nobody has asked the store yet
  CHECK(reserved_today(store) == 0);
  REQUIRE(ledger.take(kMost, kNoon).kind == Kind::go);
  CHECK_FALSE(ledger.stopped(0, kNoon));
  REQUIRE(ledger.take(1, kNoon).kind == Kind::stopped);
  const auto stop = ledger.stopped(1, kNoon);
  REQUIRE(stop);
  CHECK(stop->until == kNoon + 12h);
  CHECK_FALSE(ledger.stopped(1, kNoon + 12h));
}

TEST_CASE("budget: what others give back is found, also by those who only ask") {
  MemoryStore store;
  BudgetLedger one(store, ten_a_day(), Zone(), false, {}),
      two(store, ten_a_day(), Zone(), false, {});
  const auto taken = one.take(kMost, kNoon);
  REQUIRE(two.take(1'000, kNoon).kind == Kind::stopped);
  one.give_back(taken, kNoon);
  one.close(kNoon);
  CHECK(two.stopped(1'000, kNoon + 100ms));  // once a second is enough
  two.stopped(1'000, kNoon + 2s);
  CHECK_FALSE(two.stopped(1'000, kNoon + 3s));
  CHECK(two.take(1'000, kNoon + 3s).kind == Kind::go);
}

TEST_CASE("budget: forced, it is spent beyond any limit") {
  MemoryStore store;
  BudgetLedger ledger(store, ten_a_day(), Zone(), false, {});
  REQUIRE(ledger.take(kMost, kNoon).kind == Kind::go);
  const auto taken = ledger.force(5'000, kNoon);
  CHECK(taken.taken == 5'000);
  CHECK(reserved_today(store) == kMost + 5'000);
  ledger.correct(taken, 2'000, kNoon);
  ledger.close(kNoon);
  CHECK(reserved_today(store) == kMost + 2'000);
}

// Summer time begins in Berlin at 2026-03-29 02:00: that day is an hour shorter.
TEST_CASE("budget: begins anew at the reset on the zone's clock") {
  MemoryStore store;
  BudgetConfig config = ten_a_day();
  config.zone = "Europe/Berlin";
  config.reset = 6h;
  const auto zone = load_zone(config.zone);
  REQUIRE(zone);
  const UtcTime saturday = kNoon + 16 * 24h;  // 2026-03-28
  BudgetLedger ledger(store, config, *zone, false, {});
  REQUIRE(ledger.take(kMost, saturday).kind == Kind::go);
  const auto stop = ledger.take(1, saturday);
  REQUIRE(stop.kind == Kind::stopped);
  CHECK(stop.until == saturday + 16h);  // 06:00 there is 04:00 UTC by then
  CHECK(ledger.take(1, stop.until - 1us).kind == Kind::stopped);
  CHECK(ledger.take(1, stop.until).kind == Kind::go);
}

namespace {

// A store that answers writes when it is told to, on a thread of its own, or not at all.
class OddStore : public MemoryStore {
 public:
  void update(std::string key, Edit edit, Completion done) override {
    if (broken) return complete(done, Error{"the disk is full"});
    if (!slow) return MemoryStore::update(std::move(key), std::move(edit), std::move(done));
    waiting_.emplace_back([this, key = std::move(key), edit = std::move(edit),
                           done = std::move(done)] { MemoryStore::update(key, edit, done); });
  }
  void answer() {
    slow = false;
    std::thread([this] {
      for (const auto& write : std::exchange(waiting_, {})) write();
    }).join();
  }
  bool broken = false, slow = false;

 private:
  std::vector<std::function<void()>> waiting_;
};

}  // namespace

TEST_CASE("budget: who waits for the store is told, each once") {
  OddStore store;
  std::vector<std::string> told;
  BudgetLedger ledger(store, ten_a_day(), Zone(), false, [&](const std::vector<std::string>& who) {
    told.insert(told.end(), who.begin(), who.end());
  });
  store.slow = true;
  for (const char* who : {"a.test", "b.test", "a.test"})
    CHECK(ledger.take(1'000, kNoon, who).kind == Kind::soon);
  ledger.tidy(kNoon);
  CHECK(told.empty());
  store.answer();
  CHECK(told == std::vector<std::string>{"a.test", "b.test"});
  CHECK(ledger.take(1'000, kNoon, "a.test").kind == Kind::go);
  ledger.tidy(kNoon);
  CHECK(told.size() == 2);
}

TEST_CASE("budget: a store that fails refuses what costs") {
  OddStore store;
  store.broken = true;
  BudgetLedger ledger(store, ten_a_day(), Zone(), false, {});
  const auto answer = ledger.take(1'000, kNoon);
  ledger.take(1'000, kNoon);
  CHECK(ledger.take(1'000, kNoon).kind == Kind::failed);
  CHECK(ledger.take(1'000, kNoon).why == "the disk is full");
  store.broken = false;
  ledger.take(1'000, kNoon + 2s);
  CHECK(ledger.take(1'000, kNoon + 2s).kind == Kind::go);
  CHECK(answer.kind != Kind::go);
}

TEST_CASE("budget: or goes on in memory, to the same mark, and is written down later") {
  OddStore store;
  BudgetLedger ledger(store, ten_a_day(), Zone(), true, {});
  REQUIRE(ledger.take(7'000'000, kNoon).kind == Kind::go);
  const Micros before = reserved_today(store);
  store.broken = true;
  Micros spent = 7'000'000;
  for (int i = 0; i < 1000; ++i) {
    const auto answer = ledger.take(10'000, kNoon + 2s);
    if (answer.kind == Kind::go) spent += 10'000;
    ledger.tidy(kNoon + 2s);
  }
  CHECK(reserved_today(store) == before);
  CHECK(spent <= kMost);
  CHECK(spent >= kMost - 2 * kBlock);
  CHECK(ledger.take(10'000, kNoon + 2s).kind == Kind::stopped);
  store.broken = false;
  ledger.tidy(kNoon + 4s);
  ledger.close(kNoon + 4s);
  CHECK(reserved_today(store) == spent);
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

// 64 clients in 2 processes, killed at random and started again: what was taken is counted where a
// kill cannot lose it, and never more than the stop mark.
TEST_CASE("budget: raced by processes that are killed, never exceeded") {
  const TempDirectory directory;
  SharedCount taken, let;  // `let`: nobody takes more before the next crash
  constexpr Micros kPrice = 7'919;
  const auto client = [&](Line line) {
    const auto opened = open_or_die(directory.path());
    BudgetLedger ledger(*opened.store, ten_a_day(), Zone(), false, {});
    std::vector<std::thread> threads;
    for (int i = 0; i < 32; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          if (taken.get() >= let.get()) {
            if (!line.tell(0)) return;
            continue;
          }
          const auto answer = ledger.take(kPrice, kNoon);
          if (answer.kind == Kind::stopped) return;
          if (answer.kind != Kind::go) {
            std::this_thread::yield();
            continue;
          }
          taken.add(kPrice);
          if (!line.tell(1)) return;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return 0;
  };
  const auto seen = [&] { return static_cast<Micros>(taken.get()); };
  std::mt19937 random(1);
  int crashes = 0;
  for (;;) {
    const Micros until = seen() + kPrice * static_cast<Micros>(20 + random() % 200);
    let.add(static_cast<std::uint64_t>(until + 20 * kPrice) - let.get());
    Child first(client), second(client);
    bool first_open = true, second_open = true;
    while (seen() < until && (first_open || second_open)) {
      if (first_open) first_open = first.line().hear().has_value();
      if (second_open) second_open = second.line().hear().has_value();
    }
    if (!first_open && !second_open) break;
    first.kill();
    second.kill();
    crashes += 2;
  }
  CHECK(crashes >= 4);
  CHECK(seen() <= kMost);
  // Each crash wastes a block at most, and two threads may have been halted between taking and
  // counting. The two that ended well hold less than a price each.
  CHECK(seen() + crashes * (kBlock + 2 * kPrice) + 2 * kBlock >= kMost);
}
