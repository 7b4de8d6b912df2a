#include "store/notice.h"

#include <doctest/doctest.h>

#include <thread>

#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

TEST_CASE("notice: many threads see a change, one tells") {
  const TempDirectory directory;
  const auto opened = open_or_die(directory.path());
  Store& store = *opened.store;
  for (const char* state : {"on", "off", "on"}) {
    std::atomic<int> told{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto answer = wait_for([&](Completion done) {
          append_once(store, "lamp", state, {kNoon, EventKind::alert, "", state}, std::move(done));
        });
        if (answer && *answer == 1) ++told;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(told == 1);
  }
  const auto events = store.events(0, 100);
  REQUIRE(events);
  CHECK(events->size() == 3);
}

TEST_CASE("notice: a store that takes nothing is said so") {
  MemoryStore store;
  const std::string long_name(kMaxKeySize, 'x');
  CHECK_FALSE(wait_for([&](Completion done) {
    append_once(store, long_name, "on", {kNoon, EventKind::alert, "", "x"}, std::move(done));
  }));
}
