// Finds the keys that stay open for too long, and records an event for each, once for each time
// that it was shut: also over restarts, and however many processes look. Looks at what is stored,
// so it does not know which requests there are. One thread.
#pragma once

#include <map>
#include <string>

#include "policy/host_state.h"
#include "store/clock_pair.h"
#include "store/store.h"

namespace sluice {

class SlowOpen {
 public:
  SlowOpen(Store& store, Duration after) : store_(store), after_(after) {}

  void look(const ClockPair& now);

 private:
  // A probe that fails opens a key anew: the first trip since it was last closed is what counts.
  struct Shut {
    Instant closed_before{};  // tells one time from another
    Instant since{};
    bool told = false;
  };
  using Found = std::map<std::string, Shut, std::less<>>;

  void look_at(const std::string& key, const HostState& state, const ClockPair& now, Found& found);
  void tell(const std::string& key, const HostState& state, const Shut& shut, const ClockPair& now);

  Store& store_;
  const Duration after_;
  Found shut_;
};

}  // namespace sluice
