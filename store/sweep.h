// Keeps the store from growing for ever: removes hosts about which nothing was written for a while,
// closed ones and those whose cooldown ended that long ago, and counters, costs, windows and leases
// that are over. Never removes what shuts somebody out. One thread.
#pragma once

#include <cstddef>
#include <string>

#include "store/clock_pair.h"
#include "store/store.h"

namespace sluice {

class Sweep {
 public:
  explicit Sweep(Store& store) : store_(store) {}

  // Looks at no more than `limit` records and goes on there the next time. Gives the number of
  // removals that were queued.
  Result<std::size_t> step(const ClockPair& now, Duration age, std::size_t limit);

 private:
  Store& store_;
  std::string after_;  // the last key looked at; empty: from the start
};

}  // namespace sluice
