#include "proxy/clock.h"

#include <ctime>

namespace sluice {
namespace {

template <class Now>
Duration since_epoch(Now now) {
  return std::chrono::duration_cast<Duration>(now.time_since_epoch());
}

}  // namespace

Instant monotonic_now() { return Instant{since_epoch(std::chrono::steady_clock::now())}; }

Instant monotonic_roughly() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return Instant{std::chrono::duration_cast<Duration>(std::chrono::seconds(now.tv_sec) +
                                                      std::chrono::nanoseconds(now.tv_nsec))};
}

UtcTime utc_now() { return UtcTime{since_epoch(std::chrono::system_clock::now())}; }

ClockPair clock_now() {
  static const std::uint64_t boot = read_boot_id();
  return {monotonic_now(), utc_now(), boot};
}

}  // namespace sluice
