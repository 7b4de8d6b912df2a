// The one place where the machine is asked for the time.
#pragma once

#include "policy/time.h"
#include "store/clock_pair.h"

namespace sluice {

Instant monotonic_now();
Instant monotonic_roughly();  // the same clock, some milliseconds late, for a tenth of the price
UtcTime utc_now();
ClockPair clock_now();  // both, and the boot they belong to

}  // namespace sluice
