// One moment on both clocks, and the boot that the monotonic one counts from: what it takes to
// write an Instant down and to read it in another process. Passed in; store/ reads no clock.
#pragma once

#include <cstdint>

#include "policy/time.h"

namespace sluice {

struct ClockPair {
  Instant mono{};
  UtcTime utc{};
  // The same number in every process since the machine started: then Instants mean the same and the
  // wall clock does not matter. 0: not known.
  std::uint64_t boot = 0;
};

// From the kernel's boot id; 0 where there is none.
std::uint64_t read_boot_id();

}  // namespace sluice
