// One owner among all, for a bounded time, whatever the clocks do.
#include "store/lease.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

constexpr std::uint64_t kBoot = 42;
const ClockPair kNow{Instant{std::chrono::hours(100)}, kNoon, kBoot};

ClockPair later(Duration mono, Duration utc, std::uint64_t boot = kBoot) {
  return {kNow.mono + mono, kNow.utc + utc, boot};
}

bool take(Store& store, const std::string& owner, const ClockPair& now, Duration length = 60s) {
  const auto taken = wait_for(
      [&](Completion done) { take_lease(store, "nightly", owner, now, length, std::move(done)); });
  if (!taken) throw std::runtime_error(taken.error());
  return *taken == 1;
}

bool release(Store& store, const std::string& owner) {
  const auto released =
      wait_for([&](Completion done) { release_lease(store, "nightly", owner, std::move(done)); });
  if (!released) throw std::runtime_error(released.error());
  return *released == 1;
}

std::string owner_of(Store& store, const ClockPair& now) {
  const auto lease = find_lease(store, "nightly", now);
  if (!lease) return lease.error();
  return *lease ? (*lease)->owner : "(nobody)";
}

}  // namespace

TEST_CASE("lease: taken, refused to others, renewed, released") {
  MemoryStore store;
  CHECK(owner_of(store, kNow) == "(nobody)");
  CHECK(take(store, "ada", kNow));
  CHECK(owner_of(store, kNow) == "ada");
  CHECK(!take(store, "bob", kNow));
  CHECK(take(store, "ada", later(50s, 50s)));  // renewed until 110 s
  CHECK(!take(store, "bob", later(100s, 100s)));
  CHECK(!release(store, "bob"));
  CHECK(release(store, "ada"));
  CHECK(!release(store, "ada"));
  CHECK(take(store, "bob", later(100s, 100s)));
}

TEST_CASE("lease: a dead owner's ends by itself, whatever became of the clocks") {
  struct Row {
    const char* name;
    Duration mono, utc;
    std::uint64_t boot;
    bool free;
  };
  constexpr Duration year = std::chrono::hours(24 * 365);
  const Row rows[] = {
      {"a moment before", 60s - 1us, 60s - 1us, kBoot, false},
      {"at its end", 60s, 60s, kBoot, true},
      {"the wall clock jumped ahead", 10s, year, kBoot, false},
      {"the wall clock jumped back", 10s, -year, kBoot, false},
      {"at its end, the wall clock back", 60s, -year, kBoot, true},
      {"another boot, before its end", -99h, 59s, 7, false},
      {"another boot, after its end", -99h, 60s, 7, true},
      {"another boot, the wall clock back", -99h, -year, 7, false},
      {"nobody knows the boot", -99h, 60s, 0, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    MemoryStore store;
    REQUIRE(take(store, "dead", kNow));
    const ClockPair now = later(row.mono, row.utc, row.boot);
    CHECK(owner_of(store, now) == (row.free ? "(nobody)" : "dead"));
    CHECK(lease_is_over(value_of(store, "lease/nightly"), now) == row.free);
    CHECK(take(store, "next", now) == row.free);
  }
}

TEST_CASE("lease: after a boot with the clock far back, it lasts one whole length, not longer") {
  MemoryStore store;
  REQUIRE(take(store, "dead", kNow));
  const auto booted = [](Duration since) { return later(-99h + since, -1000h + since, 7); };
  CHECK(!take(store, "next", booted(0s)));  // who asks first finds out
  CHECK(!take(store, "next", booted(59s)));
  CHECK(take(store, "next", booted(60s)));
}

TEST_CASE("lease: one that cannot be read binds nobody") {
  MemoryStore store;
  REQUIRE(put(store, "lease/nightly", "nonsense"));
  CHECK(owner_of(store, kNow) == "(nobody)");
  CHECK(lease_is_over("nonsense", kNow));
  CHECK(take(store, "ada", kNow));
}

TEST_CASE("lease: a long owner's name is cut, and still his") {
  MemoryStore store;
  const std::string name(70'000, 'a');
  CHECK(take(store, name, kNow));
  CHECK(take(store, name, kNow));
  CHECK(release(store, name));
}

TEST_CASE("lease: of twenty threads, one has it at any time") {
  TempDirectory directory;
  auto opened = open_or_die(directory.path());
  Store& store = *opened.store;
  std::atomic<int> inside{0}, most{0}, turns{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back([&, name = "thread" + std::to_string(t)] {
      while (!take(store, name, kNow)) {}
      most = std::max(most.load(), ++inside);
      ++turns;
      --inside;
      release(store, name);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(most == 1);
  CHECK(turns == 20);
}

TEST_CASE("lease: of twenty processes, one has it; killed, the next one after its time") {
  TempDirectory directory;
  std::vector<std::unique_ptr<Child>> fleet;
  for (int n = 0; n < 20; ++n) {
    fleet.push_back(std::make_unique<Child>([&, n](Line line) {
      auto opened = open_or_die(directory.path());
      line.tell(1);
      line.hear();
      line.tell(take(*opened.store, "process" + std::to_string(n), kNow) ? 1 : 0);
      line.hear();
      return 0;
    }));
  }
  for (const auto& child : fleet) REQUIRE(child->line().hear());
  for (const auto& child : fleet) child->line().tell(1);
  std::uint64_t owners = 0;
  for (const auto& child : fleet) owners += child->line().hear().value_or(100);
  CHECK(owners == 1);
  for (const auto& child : fleet) child->kill();
  auto opened = open_or_die(directory.path());
  CHECK(!take(*opened.store, "next", later(59s, 59s)));
  CHECK(take(*opened.store, "next", later(60s, 60s)));
}
