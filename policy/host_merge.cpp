#include "policy/host_merge.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

bool same_breaker(const HostState& a, const HostState& b) {
  return a.phase == b.phase && a.epoch == b.epoch && a.until == b.until &&
         a.probe_successes == b.probe_successes && a.last_lease == b.last_lease &&
         a.leases == b.leases;
}

// Ours is a trip or a longer cooldown, not merely the cooldown that was read.
bool has_shut(const HostState& base, const HostState& ours) {
  return ours.phase == Phase::open && (ours.epoch != base.epoch || ours.until > base.until);
}

// Somebody's word that came after ours: all that was sent before it is late. But a cooldown is not
// shortened by another one.
HostState breaker_of(const HostState& base, HostState ours, HostState stored) {
  if (same_breaker(base, stored)) return ours;
  if (!has_shut(base, ours)) return stored;
  if (stored.phase == Phase::open) {
    const std::uint64_t epoch = std::max(stored.epoch, ours.epoch);
    HostState out = ours.until > stored.until ? std::move(ours) : std::move(stored);
    out.epoch = epoch;
    return out;
  }
  return ours.epoch >= stored.epoch ? ours : stored;
}

// `theirs` and what we have added to `base`.
std::uint64_t sum(std::uint64_t base, std::uint64_t ours, std::uint64_t theirs) {
  return theirs + (ours > base ? ours - base : 0);
}

Counts sum(const Counts& base, const Counts& ours, const Counts& theirs) {
  return {.success = sum(base.success, ours.success, theirs.success),
          .neutral = sum(base.neutral, ours.neutral, theirs.neutral),
          .rate_limited = sum(base.rate_limited, ours.rate_limited, theirs.rate_limited),
          .anti_bot = sum(base.anti_bot, ours.anti_bot, theirs.anti_bot),
          .server_error = sum(base.server_error, ours.server_error, theirs.server_error),
          .network = sum(base.network, ours.network, theirs.network),
          .local = sum(base.local, ours.local, theirs.local),
          .refused = sum(base.refused, ours.refused, theirs.refused),
          .trips = sum(base.trips, ours.trips, theirs.trips),
          .junk = sum(base.junk, ours.junk, theirs.junk)};
}

// One of two values that differ from `base`, or the larger where both do.
template <class Value>
Value changed(const Value& base, const Value& ours, const Value& theirs) {
  if (ours == base) return theirs;
  if (theirs == base) return ours;
  return std::max(ours, theirs);
}

// Failures that both have seen: the evidence of two is the evidence of one.
std::vector<Instant> window_of(const HostState& base, const HostState& ours,
                               const HostState& stored) {
  std::vector<Instant> out = stored.window;
  const Instant known = base.window.empty() ? Instant{} : base.window.back();
  for (const Instant at : ours.window) {
    if (at > known) out.push_back(at);
  }
  std::sort(out.begin(), out.end());
  if (out.size() > HostState::max_window) {
    out.erase(out.begin(), out.end() - std::ptrdiff_t{HostState::max_window});
  }
  return out;
}

PaceMemory pace_of(const PaceMemory& base, const PaceMemory& ours, const PaceMemory& theirs) {
  if (ours == base) return theirs;
  if (theirs == base) return ours;
  PaceMemory out = ours.learned_at >= theirs.learned_at ? ours : theirs;
  out.delay = std::max(ours.delay, theirs.delay);
  out.delay_floor = std::max(ours.delay_floor, theirs.delay_floor);
  out.refusals = std::max(ours.refusals, theirs.refusals);
  out.hold = changed(base.hold, ours.hold, theirs.hold);
  return out;
}

}  // namespace

HostState shut_as(const HostState& ours, HostState stored) {
  HostState out = std::move(stored);
  out.last_lease = std::max(ours.last_lease, out.last_lease);
  out.counts = ours.counts;
  out.pace = ours.pace;
  out.usual = ours.usual;
  out.version = ours.version;
  return out;
}

HostState merged(const HostState& base, HostState ours, HostState stored) {
  HostState evidence;
  evidence.counts = sum(base.counts, ours.counts, stored.counts);
  evidence.pace = pace_of(base.pace, ours.pace, stored.pace);
  evidence.window = window_of(base, ours, stored);
  evidence.consecutive = changed(base.consecutive, ours.consecutive, stored.consecutive);
  evidence.streak = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(sum(base.streak, ours.streak, stored.streak), UINT32_MAX));
  evidence.calm_since = std::max(ours.calm_since, stored.calm_since);
  evidence.usual = joined(stored.usual, ours.usual);
  evidence.version = stored.version;
  const std::uint64_t last_lease = std::max(ours.last_lease, stored.last_lease);
  // What led to a trip is forgotten with it, so it is put together only within one epoch.
  const bool one_epoch =
      ours.epoch == stored.epoch && ours.phase == Phase::closed && stored.phase == Phase::closed;
  HostState out = breaker_of(base, std::move(ours), std::move(stored));
  out.counts = evidence.counts;
  out.pace = evidence.pace;
  out.usual = evidence.usual;
  out.version = evidence.version;
  out.last_lease = last_lease;
  out.calm_since = evidence.calm_since;
  if (one_epoch) {
    out.window = std::move(evidence.window);
    out.consecutive = evidence.consecutive;
    out.streak = evidence.streak;
  }
  return out;
}

}  // namespace sluice
