// Where alerts go. A receiver waits for its answer, so it is asked on the thread of the alerts and
// on no other; it ends within its time-out, and soon after `ending` is set.
#pragma once

#include <atomic>
#include <string>

#include "policy/alert.h"
#include "policy/time.h"

namespace sluice {

struct Delivery {
  enum class Kind { taken, later, never };

  Kind kind = Kind::taken;
  std::string problem;  // one clause for the log, without any secret; empty when taken
  Duration asked = 0s;  // how long it wants to be left alone; 0: it did not say
};

class AlertReceiver {
 public:
  AlertReceiver() = default;
  AlertReceiver(const AlertReceiver&) = delete;
  AlertReceiver& operator=(const AlertReceiver&) = delete;
  virtual ~AlertReceiver() = default;

  virtual std::string name() const = 0;  // "webhook", "command": also its record's in the store
  virtual Delivery deliver(const AlertMessage& message, UtcTime now,
                           const std::atomic<bool>& ending) = 0;
};

}  // namespace sluice
