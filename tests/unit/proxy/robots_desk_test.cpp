#include "proxy/robots/robots_desk.h"

#include <doctest/doctest.h>

#include <functional>
#include <utility>
#include <vector>

using namespace sluice;

namespace {

struct Loop final : Mailbox {
  std::vector<std::function<void()>> tasks;
  void post(std::function<void()> task) override { tasks.push_back(std::move(task)); }
  void run() {
    for (const auto& task : std::exchange(tasks, {})) task();
  }
};

const RobotsFile slow = RobotsFile::parse("User-agent: *\nCrawl-delay: 5\n");
const Instant t0{1h};

}  // namespace

TEST_CASE("robots desk: one fetches, all are told on their own loops") {
  RobotsDesk desk;
  Loop one, other;
  std::vector<Duration> told;
  const auto note = [&](const RobotsRef& file) { told.push_back(file->crawl_delay("x")); };
  CHECK(desk.find("a:80", t0) == nullptr);
  const auto first = desk.want("a:80", one, note);
  const auto second = desk.want("a:80", other, note);
  const auto elsewhere = desk.want("b:80", other, note);
  CHECK(first.first);
  CHECK_FALSE(second.first);
  CHECK(elsewhere.first);
  desk.learned("a:80", slow, t0, t0 + 1h);
  CHECK(told.empty());
  one.run();
  CHECK(told.size() == 1);
  other.run();
  CHECK(told == std::vector<Duration>{5s, 5s});
}

TEST_CASE("robots desk: who has left is not told") {
  RobotsDesk desk;
  Loop loop;
  bool told = false;
  const auto note = [&](const RobotsRef&) { told = true; };
  { const auto asked = desk.want("a:80", loop, note); }
  auto late = desk.want("a:80", loop, note);
  CHECK_FALSE(late.first);  // it is still being fetched
  desk.learned("a:80", slow, t0, t0 + 1h);
  late.handle.reset();  // between the post and the turn of the loop
  loop.run();
  CHECK_FALSE(told);
}

TEST_CASE("robots desk: what is old is asked for again, and room is bounded") {
  RobotsDesk desk(2);
  desk.learned("a", slow, t0, t0 + 10s);
  CHECK(desk.find("a", t0 + 9s) != nullptr);
  CHECK(desk.find("a", t0 + 10s) == nullptr);
  desk.learned("b", slow, t0, t0 + 20s);
  desk.learned("c", slow, t0, t0 + 30s);  // a, whose time is up first, makes room
  CHECK(desk.find("a", t0) == nullptr);
  CHECK(desk.find("b", t0) != nullptr);
  desk.learned("d", slow, t0 + 25s, t0 + 60s);  // b is over
  CHECK(desk.find("b", t0) == nullptr);
  CHECK(desk.find("c", t0 + 25s) != nullptr);
  CHECK(desk.find("d", t0 + 25s) != nullptr);
}
