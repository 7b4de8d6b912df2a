// A HostState as bytes and back. Times are written as UTC microseconds and read as Instants of the
// reading process, in such a way that a wall clock that jumped can neither stretch a cooldown nor
// void one within a boot. Any bytes give a state within its bounds, or an error.
#pragma once

#include <string>
#include <string_view>

#include "policy/host_state.h"
#include "policy/result.h"
#include "store/clock_pair.h"

namespace sluice {

struct HostRecord {
  HostState state;
  Instant saved{};  // when it was written, on the reader's clock; never in the future
};

std::string encode_host(const HostState& state, const ClockPair& now);

// `longest` is the longest cooldown that the rules allow: nothing read ends later than that from
// now. What an operator ordered has no such bound.
Result<HostRecord> decode_host(std::string_view bytes, const ClockPair& now, Duration longest);

}  // namespace sluice
