// What requests have cost: added up, written down, and reported by policy, host and job.
#include "proxy/cost_book.h"

#include <doctest/doctest.h>

#include "proxy/cost_report.h"
#include "store/cost_record.h"
#include "store/counter.h"
#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

BudgetConfig ten_a_day() {
  BudgetConfig config;
  config.daily = 10;
  return config;
}

CostReport report_of(Store& store, UtcTime now = kNoon) {
  auto report = cost_report(store, ten_a_day(), Zone(), now);
  REQUIRE(report);
  return *report;
}

const SpenderReport& spender(const CostReport& report, std::string_view kind,
                             std::string_view name) {
  for (const SpenderReport& known : report.spenders)
    if (known.kind == kind && known.name == name) return known;
  FAIL("no line for " << name);
  return report.spenders.front();
}

class BrokenStore : public MemoryStore {
 public:
  void update(std::string key, Edit edit, Completion done) override {
    if (broken) return complete(done, Error{"the disk is full"});
    MemoryStore::update(std::move(key), std::move(edit), std::move(done));
  }
  bool broken = true;
};

}  // namespace

TEST_CASE("cost book: by policy, host and job, today and this month") {
  MemoryStore store;
  CostBook book(store, 0s, Zone());
  book.add({"openai", "api.openai.com", "nightly", 20'000}, kNoon - 24h);
  book.add({"openai", "api.openai.com", "nightly", 30'000}, kNoon);
  book.add({"openai", "eu.api.openai.com", "", 5'000}, kNoon);
  book.add({"free", "free.test", "", 0}, kNoon);
  CHECK(report_of(store).spenders.empty());
  book.flush();
  const CostReport report = report_of(store);
  CHECK(report.day.spent == 35'000);
  CHECK(report.day.requests == 3);
  CHECK(report.month.spent == 55'000);
  CHECK(report.month.requests == 4);
  CHECK(report.spenders.front().kind == "policy");
  CHECK(report.spenders.front().name == "openai");
  CHECK(report.spenders.back().kind == "job");
  const SpenderReport& job = spender(report, "job", "nightly");
  CHECK(job.today == 30'000);
  CHECK(job.month == 50'000);
  CHECK(job.requests_month == 2);
  CHECK(spender(report, "host", "free.test").requests_today == 1);
  CHECK(report_of(store, kNoon + 24h).day.spent == 0);
}

TEST_CASE("cost book: several add to one report, each its own once") {
  MemoryStore store;
  CostBook one(store, 0s, Zone()), two(store, 0s, Zone());
  for (int i = 0; i < 10; ++i) {
    one.add({"p", "h", "j", 100}, kNoon);
    two.add({"p", "h", "j", 1}, kNoon);
    one.flush();
    two.flush();
    one.flush();
  }
  CHECK(report_of(store).day.spent == 1'010);
  CHECK(report_of(store).day.requests == 20);
}

TEST_CASE("cost book: what the store does not take is offered again") {
  BrokenStore store;
  CostBook book(store, 0s, Zone());
  book.add({"p", "h", "", 100}, kNoon);
  book.flush();
  book.add({"p", "h", "", 1}, kNoon);
  book.flush();
  store.broken = false;
  book.flush();
  CHECK(report_of(store).day.spent == 101);
}

TEST_CASE("cost book: a flood of names is bounded, and its sum is right") {
  MemoryStore store;
  CostBook book(store, 0s, Zone());
  for (int i = 0; i < 20'000; ++i) book.add({"p", "h" + std::to_string(i), "", 3}, kNoon);
  book.flush();
  const CostReport report = report_of(store);
  CHECK(report.day.spent == 60'000);
  CHECK(report.spenders.size() == 1 + kMaxCostLines + 1);
  Micros hosts = 0;
  for (const SpenderReport& line : report.spenders) hosts += line.kind == "host" ? line.today : 0;
  CHECK(hosts == 60'000);
}

TEST_CASE("cost report: what is reserved and not spent") {
  MemoryStore store;
  CostBook book(store, 0s, Zone());
  reserve(store, "budget/day/2026-03-12", 8'000'000, 8'000'000, kNoon + 12h, {});
  book.add({"p", "h", "", 7'960'000}, kNoon);
  book.flush();
  const CostReport report = report_of(store);
  CHECK(report.day.limit == 10'000'000);
  CHECK(report.day.most == 8'000'000);
  CHECK(report.day.reserved() == 40'000);
  CHECK(report.day.stopped());
  CHECK_FALSE(report.month.stopped());
}
