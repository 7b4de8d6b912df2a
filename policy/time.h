// The two kinds of time in Sluice. An Instant runs on the monotonic clock and is what every
// decision is made with; a UtcTime is a date, for storage and for what origins say. Neither can be
// read here: policy/ is told the time, proxy/clock.cpp is the one file that asks the machine.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

using Duration = std::chrono::microseconds;

struct MonotonicClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
};
struct UtcClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<UtcClock>;
  static constexpr bool is_steady = false;
};

using Instant = MonotonicClock::time_point;
using UtcTime = UtcClock::time_point;  // since 1970-01-01T00:00:00Z, without leap seconds

using namespace std::chrono_literals;

}  // namespace sluice
