// Sliding windows: no more than `count` requests within any stretch of `per`. A history holds when
// requests were let go, rounded so that it stays small and errs only to the safe side. Pure values:
// what is taken is added with the latest moment at which it may still be used, so that several
// processes can share a history and take a few ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/policy.h"
#include "policy/time.h"

namespace sluice {

inline constexpr std::size_t kMaxLimitSlots = 64;    // of one window; finer ones are merged
inline constexpr std::size_t kMaxLimitWindows = 32;  // of one history

// Requests that may have gone out at any time from `first` to `last`: they count until last + per.
struct LimitSlot {
  Instant first{}, last{};
  std::uint64_t count = 0;
  bool operator==(const LimitSlot&) const = default;
};

struct LimitWindow {
  Duration per{};
  std::vector<LimitSlot> slots;  // oldest first
  bool operator==(const LimitWindow&) const = default;
};

// By length, so that another count in the policy finds what was sent before.
using LimitHistory = std::vector<LimitWindow>;

struct LimitAsk {
  Instant now{};
  Instant until{};         // the latest moment at which what is taken may be used
  std::uint64_t want = 1;  // at most this many
  bool needed = true;      // one is for a request that waits; the others are taken ahead
};

// How many may go, all of them entered into the history. What is taken ahead is at most half of
// what is free, so that the last ones do not lie idle with somebody.
std::uint64_t take(const std::vector<RequestLimit>& limits, LimitHistory& history,
                   const LimitAsk& ask);

// Takes out what was taken under these limits with this `until` and not used.
void give_back(const std::vector<RequestLimit>& limits, LimitHistory& history, Instant until,
               std::uint64_t count);

// When the next one may go; `now` when it may at once.
Instant next_free(const std::vector<RequestLimit>& limits, const LimitHistory& history,
                  Instant now);

// How many count against a window of this length.
std::uint64_t used(const LimitHistory& history, Duration per, Instant now);

}  // namespace sluice
