// One way of telling people: an outbox, the receiver that empties it, and its record in the store,
// written before anything is sent and after it was taken. One thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "policy/alert_outbox.h"
#include "policy/result.h"
#include "proxy/alerts/receiver.h"
#include "store/clock_pair.h"
#include "store/store.h"

namespace sluice {

// A disk that hangs must not hang the thread that would tell of it.
inline constexpr Duration kStoreWait = 3s;

// Since the start, of all ways together. Any thread.
struct AlertTally {
  std::atomic<std::uint64_t> sent{0};     // messages that were taken
  std::atomic<std::uint64_t> failed{0};   // tries that were not
  std::atomic<std::uint64_t> dropped{0};  // alerts that were given up
  std::atomic<std::uint64_t> waiting{0};  // alerts now
};

class AlertChannel {
 public:
  AlertChannel(Store& store, AlertRules rules, std::unique_ptr<AlertReceiver> receiver,
               AlertTally& tally)
      : store_(store), rules_(rules), receiver_(std::move(receiver)), tally_(tally) {}

  // Goes on where the record ends. What is waiting here already is kept: the store could not hold
  // it. Without a record nothing from before `started` is told.
  bool load(const ClockPair& now, UtcTime started);  // false: the store cannot say
  void forget();                                     // another process tells now

  using Wanted = std::function<bool(const Alert&)>;
  void read_events(const ClockPair& now, const Wanted& wanted);
  void take(Alert alert, const ClockPair& now);

  // At most one message; false: there is none to send now. `may_send` is asked just before.
  bool deliver(const ClockPair& now, const std::function<bool()>& may_send,
               const std::atomic<bool>& ending);
  void give_up(const ClockPair& now);
  std::uint64_t waiting() const { return waiting_count(box_); }

 private:
  Result<std::uint64_t> last_event_before(UtcTime started);
  void save(const ClockPair& now);
  void complain(const AlertMessage& dropped, const std::string& why, const ClockPair& now);
  void not_taken(const AlertMessage& message, const Delivery& delivery, const ClockPair& now);

  Store& store_;
  const AlertRules rules_;
  const std::unique_ptr<AlertReceiver> receiver_;
  AlertTally& tally_;
  Outbox box_;
  std::string last_problem_;
};

}  // namespace sluice
