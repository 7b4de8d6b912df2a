#include "proxy/tally.h"

#include <doctest/doctest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "proxy/own_time.h"

using namespace sluice;

namespace {

std::uint64_t count_of(const Tally::Sums& sums, std::string_view reason) {
  for (std::size_t i = 0; i < Tally::kReasons.size(); ++i)
    if (Tally::kReasons[i] == reason) return sums.refused[i];
  return 0;
}

std::uint64_t total(const Histogram& histogram) {
  return std::accumulate(histogram.counts.begin(), histogram.counts.end(), std::uint64_t{0});
}

}  // namespace

TEST_CASE("tally: refusals by their reason, and ours apart from what failed on the way") {
  Tally tally;
  for (const auto reason : {"breaker-open", "breaker-open", "dns", "a-word-of-tomorrow"})
    tally.refused(reason);
  const auto sums = tally.sums();
  CHECK(count_of(sums, "breaker-open") == 2);
  CHECK(count_of(sums, "dns") == 1);
  CHECK(count_of(sums, "other") == 1);
  CHECK(sums.outcomes.refused == 2);
  CHECK(Tally::kReasons[Tally::kOurs] == "bad-request");
}

TEST_CASE("tally: every outcome is counted as what it is") {
  Tally tally;
  const OutcomeKind kinds[] = {OutcomeKind::success,      OutcomeKind::neutral,
                               OutcomeKind::rate_limited, OutcomeKind::anti_bot,
                               OutcomeKind::server_error, OutcomeKind::network,
                               OutcomeKind::local};
  std::uint64_t times = 0;
  for (const OutcomeKind kind : kinds) {
    ++times;
    for (std::uint64_t i = 0; i < times; ++i) {
      Outcome outcome{.kind = kind};
      outcome.signal.junk = 1;
      tally.ended(outcome);
    }
  }
  tally.tripped();
  CHECK(tally.sums().outcomes == Counts{.success = 1,
                                        .neutral = 2,
                                        .rate_limited = 3,
                                        .anti_bot = 4,
                                        .server_error = 5,
                                        .network = 6,
                                        .local = 7,
                                        .refused = 0,
                                        .trips = 1,
                                        .junk = 28});
}

TEST_CASE("tally: changes of pace, and what an observing policy would have done") {
  Tally tally;
  tally.pace_changed();
  tally.observed(true);
  tally.observed(true);
  tally.observed(false);
  const Tally::Sums sums = tally.sums();
  CHECK(sums.pace_changes == 1);
  CHECK(sums.would_wait == 2);
  CHECK(sums.would_refuse == 1);
}

TEST_CASE("tally: a duration on a bound is below it, one beyond the last is in the last bin") {
  Tally tally;
  tally.held(10ms);
  tally.held(11ms);
  tally.held(2min);
  const Histogram hold = tally.sums().hold;
  REQUIRE(hold.counts.size() == hold.bounds.size() + 1);
  CHECK(hold.counts[0] == 1);
  CHECK(hold.counts[1] == 1);
  CHECK(hold.counts.back() == 1);
  CHECK(hold.sum == doctest::Approx(120.021));
  CHECK(total(tally.sums().overhead) == 0);
}

TEST_CASE("tally: threads lose no count") {
  constexpr std::uint64_t kEach = 20'000;
  Tally tally;
  std::vector<std::thread> threads;
  for (int i = 0; i < 24; ++i)  // more than there are shards
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kEach; ++n) {
        tally.refused("limit");
        tally.added(1us);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(count_of(tally.sums(), "limit") == 24 * kEach);
  CHECK(total(tally.sums().overhead) == 24 * kEach);
}

TEST_CASE("own time: what passes while somebody else is waited for does not count") {
  const Instant t0{1h};
  OwnTime time;
  time.start(t0);
  time.wait(t0 + 2ms);
  CHECK_FALSE(time.running());
  time.wait(t0 + 50ms);
  time.go_on(t0 + 100ms);
  time.go_on(t0 + 101ms);
  CHECK(time.running());
  CHECK(time.stop(t0 + 104ms) == 6ms);
  CHECK_FALSE(time.running());
}
