// Allowances that are never exceeded, by however many, and refunds.
#include "store/counter.h"

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <thread>

#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

std::uint64_t take(Store& store, std::uint64_t amount, std::uint64_t limit,
                   UtcTime ends = kNoon + 1h) {
  const auto granted = wait_for([&](Completion done) {
    reserve(store, "budget/today", amount, limit, ends, std::move(done));
  });
  if (!granted) throw std::runtime_error(granted.error());
  return *granted;
}

std::uint64_t give_back(Store& store, std::uint64_t amount) {
  const auto given =
      wait_for([&](Completion done) { refund(store, "budget/today", amount, std::move(done)); });
  if (!given) throw std::runtime_error(given.error());
  return *given;
}

std::uint64_t used(Store& store) { return *reserved(store, "budget/today"); }

}  // namespace

TEST_CASE("counter: what is granted, and what is left") {
  MemoryStore store;
  CHECK(used(store) == 0);
  CHECK(take(store, 40, 100) == 40);
  CHECK(take(store, 40, 100) == 40);
  CHECK(take(store, 40, 100) == 20);  // the rest of it
  CHECK(take(store, 40, 100) == 0);
  CHECK(used(store) == 100);
  CHECK(give_back(store, 30) == 30);
  CHECK(used(store) == 70);
  CHECK(take(store, 40, 100) == 30);
  CHECK(take(store, 1, 50) == 0);  // the limit was lowered under what is used
  CHECK(take(store, UINT64_MAX, UINT64_MAX) == UINT64_MAX - 100);
}

TEST_CASE("counter: no more comes back than was taken") {
  MemoryStore store;
  CHECK(give_back(store, 5) == 0);
  take(store, 10, 100);
  CHECK(give_back(store, 500) == 10);
  CHECK(used(store) == 0);
}

TEST_CASE("counter: one that cannot be read is used up, and stays so") {
  MemoryStore store;
  REQUIRE(put(store, "count/budget/today", "nonsense"));
  CHECK(take(store, 1, 1000) == 0);
  CHECK(give_back(store, 1) == 0);
  CHECK(used(store) == UINT64_MAX);
  CHECK(!counter_is_over("nonsense", UtcTime::max() - 1us));
}

TEST_CASE("counter: it is over at the end of its time, the latest that was named") {
  MemoryStore store;
  take(store, 1, 10, kNoon + 1h);
  take(store, 1, 10, kNoon + 3h);
  take(store, 1, 10, kNoon + 2h);
  const std::string bytes = value_of(store, "count/budget/today");
  CHECK(!counter_is_over(bytes, kNoon + 3h - 1us));
  CHECK(counter_is_over(bytes, kNoon + 3h));
}

TEST_CASE("counter: twenty threads that reserve and refund never exceed the limit") {
  TempDirectory directory;
  auto opened = open_or_die(directory.path());
  Store& store = *opened.store;
  constexpr std::uint64_t kLimit = 500;
  std::atomic<std::uint64_t> spent{0};
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 20; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 20; ++i) {
        const std::uint64_t granted = take(store, 1 + random() % 40, kLimit);
        const std::uint64_t unspent = granted == 0 ? 0 : random() % granted;
        if ((spent += granted - unspent) > kLimit) exceeded = true;
        if (unspent != 0 && give_back(store, unspent) != unspent) exceeded = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(!exceeded);
  CHECK(used(store) == spent);
  CHECK(spent <= kLimit);
}

TEST_CASE("counter: processes that are killed waste their block, and no more is granted") {
  TempDirectory directory;
  constexpr std::uint64_t kLimit = 100;
  std::uint64_t granted = 0;
  for (int round = 0; round < 15; ++round) {
    Child child([&](Line line) {
      auto opened = open_or_die(directory.path());
      line.tell(take(*opened.store, 10, kLimit));
      line.hear();
      return 0;
    });
    granted += child.line().hear().value_or(1000);
    child.kill();
  }
  CHECK(granted == kLimit);
}
