// What would happen to a request now, by what is written down: in the order of the daemon's own
// gates, asking the same functions, on copies. Changes nothing. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/cli/memory.h"
#include "store/clock_pair.h"

namespace sluice {

struct Foreseeable {
  const Match& match;
  const KnownKey& known;  // readable
  std::string_view host, path;
  std::uint16_t port = 0;
  bool https = false, tunnel = false;
  std::string_view job;  // empty: none
};

struct Forecast {
  bool goes = true;
  std::string_view word;  // "forward", "probe", "hold", "refuse"
  std::string text;       // the same as a sentence
};

Forecast forecast(Memory& memory, const Foreseeable& request, const ClockPair& now);

}  // namespace sluice
