// States of hosts in a store: who read an older one must read again, an operator is never lost.
#include "store/hosts.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "policy/breaker.h"
#include "store/memory.h"
#include "store/sweep.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

const ClockPair kNow{Instant{std::chrono::hours(100)}, kNoon, 42};

HostState load(Store& store, std::string_view key) {
  auto loaded = load_host(store, key, kNow, 48h);
  if (!loaded) throw std::runtime_error(loaded.error());
  return loaded->state;
}

std::uint64_t save(Store& store, std::string_view key, const HostState& state,
                   const ClockPair& now = kNow) {
  const auto saved =
      wait_for([&](Completion done) { save_host(store, key, state, now, std::move(done)); });
  if (!saved) throw std::runtime_error(saved.error());
  return *saved;
}

std::uint64_t order(Store& store, std::string_view key,
                    std::function<HostState(HostState)> change) {
  const auto done = wait_for([&](Completion completion) {
    change_host(store, key, kNow, 48h, std::move(change), std::move(completion));
  });
  if (!done) throw std::runtime_error(done.error());
  return *done;
}

// What a daemon does with an outcome: reads, computes, saves, and again until nobody came first.
void count_success(Store& store, std::string_view key) {
  while (true) {
    HostState state = load(store, key);
    ++state.counts.success;
    if (save(store, key, state) != 0) return;
  }
}

// Whether this one got the only probe of a key whose cooldown is over.
bool wins_probe(Store& store, std::string_view key) {
  while (true) {
    const Step step = decide({}, load(store, key), kNow.mono, {kNow.mono});
    if (step.decision.act != Decision::Act::probe) return false;
    if (save(store, key, step.next) != 0) return true;
  }
}

HostState cooled_down() {
  HostState state;
  state.phase = Phase::open;
  state.until = kNow.mono - 1s;
  state.epoch = 1;
  return state;
}

}  // namespace

TEST_CASE("hosts: a key that nobody knows is fresh; a saved one comes back with its version") {
  MemoryStore store;
  const auto fresh = load_host(store, "a", kNow, 48h);
  REQUIRE(fresh);
  CHECK(fresh->state == HostState{});
  CHECK(fresh->store_version == store.version());
  HostState state;
  state.level = 2;
  const std::uint64_t version = save(store, "a", state);
  CHECK(version != 0);
  HostState stored = load(store, "a");
  CHECK(stored.version == version);
  CHECK(stored.level == 2);
  stored.level = 3;
  CHECK(save(store, "a", stored) == version + 1);
  CHECK(load(store, "a").level == 3);
}

TEST_CASE("hosts: who read an older version changes nothing") {
  MemoryStore store;
  save(store, "a", {});
  HostState first = load(store, "a"), second = first;
  first.level = 1;
  second.level = 2;
  CHECK(save(store, "a", first) != 0);
  CHECK(save(store, "a", second) == 0);
  CHECK(load(store, "a").level == 1);
  HostState never_read;
  never_read.level = 3;
  CHECK(save(store, "a", never_read) == 0);
}

TEST_CASE("hosts: a record that was swept away and made anew is not the one that was read") {
  MemoryStore store;
  HostState old = load(store, "a");
  old.version = save(store, "a", old);
  const ClockPair tomorrow{kNow.mono + 24h, kNow.utc + 24h, 42};
  Sweep sweep(store);
  REQUIRE(*sweep.step(tomorrow, 1h, 100) == 1);
  HostState tripped;
  tripped.level = 4;
  REQUIRE(save(store, "a", tripped, tomorrow) != 0);
  CHECK(save(store, "a", old, tomorrow) == 0);
  CHECK(load(store, "a").level == 4);
}

TEST_CASE("hosts: a damaged record is said to be, and the next word replaces it") {
  MemoryStore store;
  REQUIRE(put(store, "host/a", "nonsense"));
  CHECK(load_host(store, "a", kNow, 48h).error() ==
        "what is stored about a is damaged: the record's checksum does not match");
  CHECK(save(store, "a", {}) != 0);
  CHECK(load(store, "a").phase == Phase::closed);
  REQUIRE(put(store, "host/a", "nonsense"));
  CHECK(order(store, "a", [](HostState state) {
          return operator_open(std::move(state), kNow.mono, 10min, "");
        }) != 0);
  CHECK(load(store, "a").phase == Phase::open);
}

TEST_CASE("hosts: the list has all keys in order, those that cannot be read too") {
  MemoryStore store;
  for (const char* key : {"b", "a", "a:8080", "policy/x"}) save(store, key, {});
  REQUIRE(put(store, "host/damaged", "nonsense"));
  REQUIRE(put(store, "lease/x", "no host"));
  std::string keys, after;
  for (bool more = true; more;) {
    const auto page = list_hosts(store, after, 2, kNow, 48h);
    REQUIRE(page);
    for (const ListedHost& host : page->hosts) {
      keys += host.key + (host.state ? " " : "! ");
      after = host.key;
    }
    more = page->more;
  }
  CHECK(keys == "a a:8080 b damaged! policy/x ");
}

TEST_CASE("hosts: an operator's word is never lost, whoever saves at the same time") {
  TempDirectory directory;
  auto opened = open_or_die(directory.path());
  Store& store = *opened.store;
  constexpr int kDaemons = 4, kSaves = 40, kOrders = 30;
  std::atomic<bool> lost{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kDaemons; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kSaves; ++i) count_success(store, "a");
    });
  }
  for (int i = 0; i < kOrders; ++i) {
    const bool open = i % 2 == 0;
    order(store, "a", [&](HostState state) {
      return open ? operator_open(std::move(state), kNow.mono, 10min, "x")
                  : operator_close(std::move(state), kNow.mono);
    });
    if (load(store, "a").phase != (open ? Phase::open : Phase::closed)) lost = true;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(!lost);
  const HostState end = load(store, "a");
  CHECK(end.counts.success == kDaemons * kSaves);
  CHECK(end.counts.trips == kOrders / 2);
  CHECK(end.phase == Phase::closed);
}

TEST_CASE("hosts: nor across processes") {
  TempDirectory directory;
  constexpr int kDaemons = 3, kSaves = 30, kOrders = 30;
  std::vector<std::unique_ptr<Child>> daemons;
  for (int n = 0; n < kDaemons; ++n) {
    daemons.push_back(std::make_unique<Child>([&](Line line) {
      auto opened = open_or_die(directory.path());
      line.tell(1);
      line.hear();
      for (int i = 0; i < kSaves; ++i) count_success(*opened.store, "a");
      return 0;
    }));
  }
  for (const auto& daemon : daemons) REQUIRE(daemon->line().hear());
  auto opened = open_or_die(directory.path());
  for (const auto& daemon : daemons) daemon->line().tell(1);
  for (int i = 0; i < kOrders; ++i) {
    order(*opened.store, "a",
          [](HostState state) { return operator_open(std::move(state), kNow.mono, 10min, "x"); });
    REQUIRE(load(*opened.store, "a").phase == Phase::open);
  }
  for (const auto& daemon : daemons) CHECK(daemon->wait() == 0);
  const HostState end = load(*opened.store, "a");
  CHECK(end.counts.success == kDaemons * kSaves);
  CHECK(end.counts.trips == kOrders);
  CHECK(end.phase == Phase::open);
}

TEST_CASE("hosts: of twenty threads that ask at the end of a cooldown, one probes") {
  TempDirectory directory;
  auto opened = open_or_die(directory.path());
  Store& store = *opened.store;
  for (int round = 0; round < 5; ++round) {
    const std::string key = "host" + std::to_string(round);
    save(store, key, cooled_down());
    std::atomic<int> probes{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 20; ++t)
      threads.emplace_back([&] { probes += wins_probe(store, key) ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    CHECK(probes == 1);
    CHECK(load(store, key).leases.size() == 1);
  }
}

TEST_CASE("hosts: of twenty processes, one probes; when it dies, the next one after its lease") {
  TempDirectory directory;
  { save(*open_or_die(directory.path()).store, "a", cooled_down()); }
  std::vector<std::unique_ptr<Child>> fleet;
  for (int n = 0; n < 20; ++n) {
    fleet.push_back(std::make_unique<Child>([&](Line line) {
      auto opened = open_or_die(directory.path());
      line.tell(1);
      line.hear();
      line.tell(wins_probe(*opened.store, "a") ? 1 : 0);
      line.hear();  // and is killed with its probe on the way
      return 0;
    }));
  }
  for (const auto& child : fleet) REQUIRE(child->line().hear());
  for (const auto& child : fleet) child->line().tell(1);
  std::uint64_t probes = 0;
  for (const auto& child : fleet) probes += child->line().hear().value_or(100);
  CHECK(probes == 1);
  for (const auto& child : fleet) child->kill();

  auto opened = open_or_die(directory.path());
  const HostState state = load(*opened.store, "a");
  REQUIRE(state.leases.size() == 1);
  const Instant expires = state.leases[0].expires;
  CHECK(expires == kNow.mono + 31s);  // probe_timeout and a little
  const auto act_at = [&](Instant now) { return decide({}, state, now, {now}).decision.act; };
  CHECK(act_at(expires - 1us) != Decision::Act::probe);
  CHECK(act_at(expires) == Decision::Act::probe);
}
