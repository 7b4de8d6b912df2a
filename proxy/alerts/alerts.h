// Tells people what they must know, on a thread of its own: reads the store's events, looks for
// keys that stay shut and for trouble with the store itself, and hands alerts to the webhook and
// the command. Never in the path of traffic: nobody waits for it. Of several processes on one store
// one tells, by a lease; trouble with the store each tells that meets it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "policy/result.h"
#include "proxy/alerts/channel.h"
#include "proxy/alerts/slow_open.h"
#include "proxy/config.h"
#include "store/store.h"

namespace sluice {

class Alerts {
 public:
  // Null: none are configured. `started`: what happened before is not told, unless it waits in the
  // store. Before other threads start.
  static Result<std::unique_ptr<Alerts>> make(const AlertsConfig& config, Store& store,
                                              UtcTime started);
  ~Alerts();
  Alerts(const Alerts&) = delete;
  Alerts& operator=(const Alerts&) = delete;

  void start();
  void stop();             // what is on its way is given up for now: the store knows
  void tell(Event event);  // what the store could not hold. Any thread
  const AlertTally& tally() const { return tally_; }

 private:
  enum class Mine { yes, no, unknown };  // unknown: the store cannot say

  Alerts(const AlertsConfig& config, Store& store, UtcTime started);
  void run();
  void turn();
  void watch_store(const ClockPair& now);
  void take_told(const ClockPair& now);
  void take(const Alert& alert, const ClockPair& now);
  Mine ask_lease(const ClockPair& now);
  void keep_lease(const ClockPair& now);
  bool wanted(const Alert& alert) const;
  void deliver();

  const AlertsConfig config_;
  Store& store_;
  const UtcTime started_;
  const std::string owner_;
  AlertTally tally_;
  std::vector<std::unique_ptr<AlertChannel>> channels_;
  SlowOpen slow_open_;
  Instant look_again_{};  // for keys that stay shut
  Mine mine_ = Mine::unknown;
  bool loaded_ = false;
  Instant renew_{};
  std::optional<Instant> trouble_;  // since when the store fails

  std::mutex mutex_;  // guards the next one
  std::vector<Event> told_;
  std::condition_variable wake_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace sluice
