// What is usual for a key: the busiest minute of each hour of the day, learned slowly from the
// days before. A plain value, kept with the key's state. Hours are UTC; summer time moves a habit
// by one of them, and the neighbours of an hour count for it.
#pragma once

#include <array>
#include <cstdint>

#include "policy/time.h"

namespace sluice {

struct UsualRate {
  static constexpr std::size_t hours = 24;
  using Peaks = std::array<std::uint16_t, hours>;

  Peaks peaks{};              // requests in a minute, of each hour
  std::int64_t hour = 0;      // the running one, since 1970; 0: nothing was ever asked
  std::uint16_t peak = 0;     // of the running hour, so far
  std::uint8_t doubtful = 0;  // 1: a burst was seen in it, so it teaches less
  UtcTime since{};            // the first request

  bool operator==(const UsualRate&) const = default;
};

// A request came, with `per_minute` in the last minute. What happened to be the running hour is
// learned when it is over.
void note_rate(UsualRate& usual, UtcTime now, std::uint32_t per_minute);

// The busiest minute that is usual at this time of the day. Another hour counts for half: a job
// that comes early today is not yet a burst.
double usual_rate(const UsualRate& usual, UtcTime now);

// For how long the key has been known.
Duration known_for(const UsualRate& usual, UtcTime now);

// What two processes have seen of one key.
UsualRate joined(UsualRate stored, const UsualRate& ours);

}  // namespace sluice
