#include "proxy/tally.h"

#include <algorithm>

namespace sluice {
namespace {

using Counter = std::atomic<std::uint64_t>;

void count(Counter& counter, std::uint64_t more = 1) {
  counter.fetch_add(more, std::memory_order_relaxed);
}

std::uint64_t read(const Counter& counter) { return counter.load(std::memory_order_relaxed); }

// Prometheus: a bucket holds what is less than or equal to its bound.
template <class Bins, class Bounds>
void sort_in(Bins& bins, const Bounds& bounds, Duration length) {
  const double seconds = std::chrono::duration<double>(length).count();
  const auto bin = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
  count(bins.counts[static_cast<std::size_t>(bin)]);
  count(bins.sum, static_cast<std::uint64_t>(std::max(length, Duration(0)) / 1us));
}

template <class Bins>
void add(Histogram& sum, const Bins& bins) {
  for (std::size_t i = 0; i < bins.counts.size(); ++i) sum.counts[i] += read(bins.counts[i]);
  sum.sum += static_cast<double>(read(bins.sum)) / 1e6;
}

template <class Bounds>
Histogram without_counts(const Bounds& bounds) {
  return {{bounds.begin(), bounds.end()}, std::vector<std::uint64_t>(bounds.size() + 1), 0};
}

}  // namespace

std::size_t Tally::shard_of_this_thread() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t mine = next.fetch_add(1) % kShards;
  return mine;
}

void Tally::refused(std::string_view reason) {
  const auto found = std::find(kReasons.begin(), kReasons.end() - 1, reason);
  count(shard().refused[static_cast<std::size_t>(found - kReasons.begin())]);
}

void Tally::ended(const Outcome& outcome) {
  Shard& mine = shard();
  count(mine.outcomes[static_cast<std::size_t>(outcome.kind)]);
  if (outcome.signal.junk > 0) count(mine.junk, outcome.signal.junk);
}

void Tally::tripped() { count(shard().trips); }
void Tally::pace_changed() { count(shard().pace_changes); }
void Tally::observed(bool would_wait) {
  count(would_wait ? shard().would_wait : shard().would_refuse);
}
void Tally::held(Duration wait) { sort_in(shard().hold, kHold, wait); }
void Tally::added(Duration overhead) { sort_in(shard().overhead, kOverhead, overhead); }

Tally::Sums Tally::sums() const {
  Sums out;
  out.hold = without_counts(kHold);
  out.overhead = without_counts(kOverhead);
  std::array<std::uint64_t, kKinds> kinds{};
  for (const Shard& one : shards_) {
    for (std::size_t i = 0; i < kKinds; ++i) kinds[i] += read(one.outcomes[i]);
    for (std::size_t i = 0; i < kReasons.size(); ++i) out.refused[i] += read(one.refused[i]);
    out.outcomes.trips += read(one.trips);
    out.outcomes.junk += read(one.junk);
    out.pace_changes += read(one.pace_changes);
    out.would_wait += read(one.would_wait);
    out.would_refuse += read(one.would_refuse);
    add(out.hold, one.hold);
    add(out.overhead, one.overhead);
  }
  const auto of = [&](OutcomeKind kind) { return kinds[static_cast<std::size_t>(kind)]; };
  out.outcomes.success = of(OutcomeKind::success);
  out.outcomes.neutral = of(OutcomeKind::neutral);
  out.outcomes.rate_limited = of(OutcomeKind::rate_limited);
  out.outcomes.anti_bot = of(OutcomeKind::anti_bot);
  out.outcomes.server_error = of(OutcomeKind::server_error);
  out.outcomes.network = of(OutcomeKind::network);
  out.outcomes.local = of(OutcomeKind::local);
  for (std::size_t i = 0; i < kOurs; ++i) out.outcomes.refused += out.refused[i];
  return out;
}

}  // namespace sluice
