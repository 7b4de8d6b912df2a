// Tells the service manager that we are alive, as often as it wants to hear it, but only while
// every worker answers. Main thread; whoever waits there must call beat_if_due() every
// until_next().
#pragma once

#include <vector>

#include "policy/time.h"
#include "proxy/watchdog.h"

namespace sluice {

class Pulse {
 public:
  explicit Pulse(std::vector<Watchdog::Ask> workers);

  Duration until_next() const;
  void beat_if_due();

 private:
  Watchdog watchdog_;
  const Duration period_;
  Instant next_;
};

}  // namespace sluice
