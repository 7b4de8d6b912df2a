// Sliding windows as tables, and against a plain list of moments.
#include "policy/limit_window.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <random>

using namespace sluice;

namespace {

constexpr Instant t0{1000h};
using Limits = std::vector<RequestLimit>;

std::uint64_t take_one(const Limits& limits, LimitHistory& history, Instant now) {
  return take(limits, history, {now, now, 1, true});
}

}  // namespace

TEST_CASE("limit window: when the next one may go") {
  struct Row {
    const char* name;
    Limits limits;
    std::vector<Duration> sent;
    Duration now;
    Duration next;  // from t0
  };
  const Row rows[] = {
      {"nothing sent", {{2, 1h}}, {}, 0s, 0s},
      {"one left", {{2, 1h}}, {0s}, 10s, 10s},
      {"full: the first must be an hour old", {{2, 1h}}, {0s, 20min}, 30min, 1h},
      {"full, but the first is over", {{2, 1h}}, {0s, 20min}, 1h, 1h},
      {"slides: the second now", {{2, 1h}}, {0s, 20min, 1h}, 61min, 80min},
      {"two windows: the longer one is full", {{2, 1min}, {3, 1h}}, {0s, 1s, 61s}, 2min, 1h},
      {"two windows: the shorter one is full", {{2, 1min}, {30, 1h}}, {0s, 1s}, 2s, 1min},
      {"no limits", {}, {}, 5s, 5s},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    LimitHistory history;
    for (const Duration at : row.sent) {
      if (!row.limits.empty()) REQUIRE(take_one(row.limits, history, t0 + at) == 1);
    }
    const Instant now = t0 + row.now;
    CHECK(next_free(row.limits, history, now) == t0 + row.next);
    CHECK(take_one(row.limits, history, now) == (row.next <= row.now ? 1 : 0));
    if (row.next <= row.now) continue;
    CHECK(take_one(row.limits, history, t0 + row.next - 1us) == 0);
    CHECK(take_one(row.limits, history, t0 + row.next) == 1);
  }
}

TEST_CASE("limit window: what is taken ahead is at most half of what is free") {
  const Limits limits{{10, 1h}};
  LimitHistory history;
  CHECK(take(limits, history, {t0, t0 + 1s, 100, false}) == 5);
  CHECK(take(limits, history, {t0, t0 + 1s, 100, true}) == 2);
  CHECK(take(limits, history, {t0, t0 + 1s, 100, false}) == 1);
  CHECK(take(limits, history, {t0, t0 + 1s, 100, true}) == 1);
  CHECK(take(limits, history, {t0, t0 + 1s, 100, false}) == 0);
  CHECK(take(limits, history, {t0, t0 + 1s, 100, true}) == 1);
  CHECK(take(limits, history, {t0, t0 + 1s, 100, true}) == 0);
  CHECK(used(history, 1h, t0) == 10);
}

TEST_CASE("limit window: what was taken ahead counts from its last use") {
  const Limits limits{{1, 1min}};
  LimitHistory history;
  REQUIRE(take(limits, history, {t0, t0 + 5s, 1, true}) == 1);
  CHECK(take_one(limits, history, t0 + 64s) == 0);
  CHECK(take_one(limits, history, t0 + 65s) == 1);
}

TEST_CASE("limit window: giving back") {
  const Limits limits{{10, 1h}, {4, 1min}};
  LimitHistory history;
  REQUIRE(take(limits, history, {t0, t0 + 1s, 2, true}) == 2);
  REQUIRE(take(limits, history, {t0, t0 + 2s, 1, true}) == 1);
  give_back(limits, history, t0 + 1s, 1);
  CHECK(used(history, 1h, t0 + 3s) == 2);
  CHECK(used(history, 1min, t0 + 3s) == 2);
  CHECK(used(history, 1min, t0 + 61s) == 1);  // the one that may have gone at 2 s
  give_back(limits, history, t0 + 30s, 5);    // nobody took that
  CHECK(used(history, 1h, t0 + 3s) == 2);
  SUBCASE("only to the windows it was taken from") {
    give_back({{4, 1min}}, history, t0 + 2s, 1);
    CHECK(used(history, 1min, t0 + 3s) == 1);
    CHECK(used(history, 1h, t0 + 3s) == 2);
  }
}

TEST_CASE("limit window: another count finds what was sent before, another length does not") {
  LimitHistory history;
  for (int i = 0; i < 5; ++i) REQUIRE(take_one({{5, 1h}}, history, t0) == 1);
  CHECK(take_one({{5, 1h}}, history, t0 + 1min) == 0);
  CHECK(take_one({{6, 1h}}, history, t0 + 1min) == 1);
  CHECK(take_one({{3, 1h}}, history, t0 + 1min) == 0);
  CHECK(take_one({{1, 2h}}, history, t0 + 1min) == 1);
  CHECK(take_one({{6, 1h}}, history, t0 + 1min) == 0);  // still there
}

TEST_CASE("limit window: bounded, whatever is asked") {
  LimitHistory history;
  for (int i = 0; i < 200; ++i) {
    take({{1000000, 1h + std::chrono::seconds(i)}}, history, {t0, t0 + 1s, 1, true});
  }
  CHECK(history.size() <= kMaxLimitWindows);
  const Limits limits{{1000000, 1h}};
  for (int i = 0; i < 100000; ++i) {
    take(limits, history,
         {t0 + std::chrono::milliseconds(i * 40), t0 + std::chrono::milliseconds(i * 40) + 1s, 3,
          true});
  }
  for (const LimitWindow& window : history) CHECK(window.slots.size() <= kMaxLimitSlots);
}

TEST_CASE("limit window: never more than allowed in any stretch, and little less") {
  // Times go forward with small steps back, as when several processes hand in what they asked.
  for (const std::uint64_t count : {1u, 7u, 64u, 65u, 500u}) {
    CAPTURE(count);
    std::mt19937 random(static_cast<unsigned>(count));
    const Limits limits{{count, 1min}};
    LimitHistory history;
    std::deque<Instant> sent;
    std::uint64_t total = 0;
    Instant now = t0;
    while (now < t0 + 30min) {
      now += std::chrono::milliseconds(random() % (20000 / count + 1));
      const Instant asked = now - std::chrono::milliseconds(random() % 20);
      const Instant until = asked + std::chrono::milliseconds(20 + random() % 500);
      std::uint64_t got =
          take(limits, history, {asked, until, 1 + random() % 3, random() % 2 == 0});
      if (got > 0 && random() % 4 == 0) {
        const std::uint64_t back = 1 + random() % got;
        give_back(limits, history, until, back);
        got -= back;
      }
      // Used at any time it may be.
      for (std::uint64_t i = 0; i < got; ++i) {
        sent.push_back(now + (until - now) * static_cast<int>(random() % 100) / 100);
        ++total;
      }
    }
    std::sort(sent.begin(), sent.end());
    for (std::size_t i = count; i < sent.size(); ++i) {
      REQUIRE(sent[i] - sent[i - count] >= 1min);
    }
    CHECK(total >= count * 20);  // of 30 windows, with a quarter given back
  }
}
