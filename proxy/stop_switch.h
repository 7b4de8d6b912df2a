// The emergency stop of a running proxy: follows the file EMERGENCY_STOP with a thread of its own,
// so a busy worker delays nobody else's stop, and a worker asks with one atomic read. Never ends a
// stop by itself: when the file cannot be looked at, what was in force stays in force.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "policy/time.h"
#include "proxy/net/socket.h"
#include "proxy/refusal.h"
#include "store/store.h"

namespace sluice {

class StopSwitch {
 public:
  // Called on the watcher's thread after each change, and for a stop that was there at the start.
  using OnChange = std::function<void(bool in_force)>;

  // Knows by its return whether a stop is in force.
  explicit StopSwitch(std::string directory);
  ~StopSwitch();
  StopSwitch(const StopSwitch&) = delete;
  StopSwitch& operator=(const StopSwitch&) = delete;

  void watch(OnChange on_change);  // once
  void leave();                    // after this, on_change is called no more
  bool in_force() const { return in_force_.load(std::memory_order_acquire); }
  std::string reason() const;
  Refusal refusal() const;

 private:
  void follow();
  bool look();  // true: it has changed

  const std::string directory_;
  std::atomic<bool> in_force_{false};
  mutable std::mutex mutex_;  // guards the reason
  std::string reason_;
  OnChange on_change_;
  std::atomic<bool> leaving_{false};
  OwnedSocket wake_;  // an eventfd, so that leaving takes no time
  std::thread thread_;
};

Event stop_event(bool in_force, const std::string& reason, UtcTime now);

// One event for one stop and one for its end, however many processes see them.
void record_stop(Store& store, bool in_force, const Event& event, Completion done);

}  // namespace sluice
