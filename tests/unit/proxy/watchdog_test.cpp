#include "proxy/watchdog.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace sluice {
namespace {

// A worker whose loop turns when the test says so.
struct Loop {
  std::vector<std::function<void()>> jobs;
  Watchdog::Ask ask() {
    return [this](std::function<void()> job) { jobs.push_back(std::move(job)); };
  }
  void turn() {
    for (const auto& job : std::exchange(jobs, {})) job();
  }
};

}  // namespace

TEST_CASE("watchdog: alive while every loop turns") {
  Loop a, b;
  Watchdog watchdog({a.ask(), b.ask()});
  for (int i = 0; i < 3; ++i) {
    CHECK(watchdog.round());
    a.turn();
    b.turn();
  }
}

TEST_CASE("watchdog: one loop that hangs is enough, and it is not asked again") {
  Loop a, b;
  Watchdog watchdog({a.ask(), b.ask()});
  CHECK(watchdog.round());
  a.turn();
  CHECK_FALSE(watchdog.round());
  CHECK_FALSE(watchdog.round());
  CHECK(a.jobs.empty());
  CHECK(b.jobs.size() == 1);

  b.turn();  // it was only slow
  CHECK(watchdog.round());
  a.turn();
  b.turn();
  CHECK(watchdog.round());
}

TEST_CASE("watchdog: an answer after its end harms nobody") {
  Loop a;
  {
    Watchdog watchdog({a.ask()});
    CHECK(watchdog.round());
  }
  a.turn();
  CHECK(a.jobs.empty());
}

}  // namespace sluice
