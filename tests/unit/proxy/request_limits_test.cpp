// Request limits over a store: blocks ahead, refusals with a time, and a race of killed processes.
#include "proxy/request_limits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <random>
#include <thread>

#include "proxy/clock.h"
#include "store/limit_record.h"
#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

using Kind = RequestLimits::Answer::Kind;

ClockPair clock(Duration since) { return {Instant{100h} + since, kNoon + since, 7}; }

LimitRules hourly(std::uint64_t count) { return {{{count, 1h}}}; }

std::uint64_t counted(Store& store, const std::string& name, Duration since) {
  const auto history = limit_history(store, name, clock(since));
  REQUIRE(history);
  return used(*history, 1h, clock(since).mono);
}

// A store that answers writes when it is told to.
class SlowStore : public MemoryStore {
 public:
  void update(std::string key, Edit edit, Completion done) override {
    waiting_.emplace_back([this, key = std::move(key), edit = std::move(edit),
                           done = std::move(done)] { MemoryStore::update(key, edit, done); });
  }
  std::size_t waiting() const { return waiting_.size(); }
  void answer() {
    std::thread([this] {  // as a store does: on a thread of its own
      for (const auto& write : std::exchange(waiting_, {})) write();
    })
        .join();
  }

 private:
  std::vector<std::function<void()>> waiting_;
};

class BrokenStore : public MemoryStore {
 public:
  void update(std::string, Edit, Completion done) override {
    complete(done, Error{"the disk is full"});
  }
};

}  // namespace

TEST_CASE("request limits: exactly as many as allowed, then a time") {
  MemoryStore store;
  RequestLimits limits(store, {});
  for (int i = 0; i < 50; ++i) REQUIRE(limits.take("k", hourly(50), clock(0s)).kind == Kind::go);
  const auto answer = limits.take("k", hourly(50), clock(1s));
  CHECK(answer.kind == Kind::at);
  CHECK(answer.at >= clock(1h).mono);
  CHECK(answer.at <= clock(1h + 5s).mono);  // sent at any time of the block's
  CHECK(limits.take("other", hourly(50), clock(1s)).kind == Kind::go);
  CHECK(limits.take("k", hourly(50), {answer.at, kNoon + 1h, 7}).kind == Kind::go);
}

TEST_CASE("request limits: without limits nobody asks the store") {
  BrokenStore store;
  RequestLimits limits(store, {});
  CHECK(limits.take("k", {}, clock(0s)).kind == Kind::go);
  CHECK(limits.take("k", hourly(1), clock(0s)).kind == Kind::failed);
  CHECK(limits.take("k", hourly(1), clock(0s)).why == "the disk is full");
}

TEST_CASE("request limits: the disk is waited for once, then a block is ahead") {
  SlowStore store;
  std::vector<std::string> told;
  RequestLimits limits(store, [&](const std::string& name) { told.push_back(name); });
  CHECK(limits.take("k", hourly(1000), clock(0s)).kind == Kind::soon);
  CHECK(limits.take("k", hourly(1000), clock(0s)).kind == Kind::soon);
  CHECK(store.waiting() == 1);
  store.answer();
  CHECK(told == std::vector<std::string>{"k"});
  for (int i = 0; i < 500; ++i) {
    REQUIRE(limits.take("k", hourly(1000), clock(0s)).kind == Kind::go);
    store.answer();
  }
  CHECK(told.size() == 1);  // nobody waited any more
}

TEST_CASE("request limits: what is given back is there again") {
  MemoryStore store;
  RequestLimits limits(store, {});
  std::vector<RequestLimits::Answer> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(limits.take("k", hourly(3), clock(0s)));
  REQUIRE(limits.take("k", hourly(3), clock(0s)).kind == Kind::at);
  limits.give_back("k", taken[1], clock(10ms));
  CHECK(limits.take("k", hourly(3), clock(2s)).kind == Kind::at);  // asks again meanwhile
  CHECK(limits.take("k", hourly(3), clock(2s)).kind == Kind::go);
  CHECK(limits.take("k", hourly(3), clock(4s)).kind == Kind::at);
}

TEST_CASE("request limits: blocks that nobody used come back") {
  MemoryStore store;
  RequestLimits limits(store, {});
  REQUIRE(limits.take("k", hourly(1000), clock(0s)).kind == Kind::go);
  CHECK(counted(store, "k", 0s) == 10);
  SUBCASE("when their time is over") {
    limits.tidy(clock(1s));
    CHECK(counted(store, "k", 1s) == 10);
    limits.tidy(clock(6s));
    CHECK(counted(store, "k", 6s) == 1);
  }
  SUBCASE("at the end") {
    limits.close(clock(1s));
    CHECK(counted(store, "k", 1s) == 1);
  }
}

TEST_CASE("request limits: a changed policy keeps the count") {
  MemoryStore store;
  RequestLimits limits(store, {});
  for (int i = 0; i < 5; ++i) REQUIRE(limits.take("k", hourly(5), clock(0s)).kind == Kind::go);
  REQUIRE(limits.take("k", hourly(5), clock(0s)).kind == Kind::at);
  CHECK(limits.take("k", hourly(6), clock(0s)).kind == Kind::go);
  CHECK(limits.take("k", hourly(6), clock(0s)).kind == Kind::at);
  CHECK(limits.take("k", hourly(5), clock(0s)).kind == Kind::at);
}

TEST_CASE("request limits: a process that was killed has wasted at most a block") {
  const TempDirectory directory;
  for (int run = 0; run < 3; ++run) {
    Child child([&](Line line) {
      const auto opened = open_or_die(directory.path());
      RequestLimits limits(*opened.store, {});
      std::uint64_t sent = 0;
      while (sent < 7) {
        if (limits.take("k", hourly(1000), clock(0s)).kind == Kind::go) ++sent;
      }
      line.tell(sent);
      line.hear();
      return 0;
    });
    REQUIRE(child.line().hear() == 7);
    child.kill();
  }
  const auto opened = open_or_die(directory.path());
  const std::uint64_t seen = counted(*opened.store, "k", 0s);
  CHECK(seen >= 21);
  CHECK(seen <= 21 + 3 * 20);  // two blocks of 10: the one in use and the next
}

// 64 clients in 2 processes that are killed at random: in no stretch of the window more than
// allowed. What was taken is counted where a kill cannot lose it.
TEST_CASE("request limits: raced by processes that are killed, never exceeded") {
  const TempDirectory directory;
  SharedCount taken, let;  // `let`: nobody takes more before the next crash
  constexpr std::uint64_t kLimit = 1000, kBlock = 5;
  const auto client = [&](Line line) {
    const auto opened = open_or_die(directory.path());
    const std::uint64_t boot = read_boot_id();
    RequestLimits limits(*opened.store, {});
    std::vector<std::thread> threads;
    for (int i = 0; i < 32; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          if (taken.get() >= let.get()) {
            if (!line.tell(0)) return;
            continue;
          }
          const auto answer = limits.take("k", hourly(kLimit), {monotonic_now(), utc_now(), boot});
          if (answer.kind == Kind::at) return;
          if (answer.kind != Kind::go) {
            std::this_thread::yield();
            continue;
          }
          taken.add(1);
          if (!line.tell(1)) return;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return 0;
  };
  std::mt19937 random(1);
  std::uint64_t crashes = 0;
  for (;;) {
    const std::uint64_t until = taken.get() + 20 + random() % 150;
    let.add(until + 20 - let.get());
    Child first(client), second(client);
    bool first_open = true, second_open = true;
    while (taken.get() < until && (first_open || second_open)) {
      if (first_open) first_open = first.line().hear().has_value();
      if (second_open) second_open = second.line().hear().has_value();
    }
    if (!first_open && !second_open) break;
    first.kill();
    second.kill();
    crashes += 2;
  }
  CHECK(crashes >= 4);
  CHECK(taken.get() <= kLimit);
  // Of each: the block in use and the next, and two threads halted between taking and counting.
  CHECK(taken.get() + crashes * (2 * kBlock + 2) + 2 * kBlock >= kLimit);
}
