// The right of one owner among all processes, for a bounded time: exclusive jobs and the like. A
// dead owner's lease ends by itself. Within one boot it runs on the monotonic clock, so that a wall
// clock that jumps neither ends nor stretches it; after another boot it lasts no longer than its
// own length.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/time.h"
#include "store/clock_pair.h"
#include "store/store.h"

namespace sluice {

inline constexpr std::string_view kLeasePrefix = "lease/";

struct Lease {
  std::string owner;
  ClockPair ends{};  // on both clocks, and the boot in which it was taken
};

// Answered with 1 for the one who has it from now until now + length (also to renew it), 0 for
// everybody else.
void take_lease(Store& store, std::string_view name, std::string owner, const ClockPair& now,
                Duration length, Completion done);

// Answered with 1 if it was the owner's.
void release_lease(Store& store, std::string_view name, std::string owner, Completion done);

// Who has it; none: nobody, or it is over.
Result<std::optional<Lease>> find_lease(Store& store, std::string_view name, const ClockPair& now);

bool lease_is_over(std::string_view bytes, const ClockPair& now);

}  // namespace sluice
