// The anomalies of all keys: tells of each in the log and the events, keeps those that go on and
// the latest that ended for whoever asks, and writes them down for the commands. Bounded: of very
// many at once the rest is only counted. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "policy/anomaly.h"
#include "proxy/lost_event.h"
#include "store/anomaly_record.h"
#include "store/store.h"

namespace sluice {

class Gate;

class AnomalyBoard {
 public:
  static constexpr std::size_t kMostListed = 500;  // that go on, at once
  static constexpr std::size_t kMostEnded = 100;

  AnomalyBoard(Store& store, const AnomalyRules& rules, OnLost on_lost = {});

  void report(const std::shared_ptr<Gate>& gate, std::string_view key, const AnomalyNews& news,
              const ClockPair& now);
  // Those in which something goes on.
  std::vector<std::shared_ptr<Gate>> gates();

  std::vector<NotedAnomaly> listed();  // that go on, by key; then the latest that ended
  std::array<std::uint64_t, kAnomalyKinds> begun() const;  // by kind

  void save(const ClockPair& now);   // about once a second
  void close(const ClockPair& now);  // nothing goes on any more, as far as others can know

 private:
  struct Entry {
    NotedAnomaly noted;
    std::weak_ptr<Gate> gate;
    bool listed = false;
  };
  std::vector<NotedAnomaly> written() const;
  void tell(const NotedAnomaly& noted, UtcTime now);

  Store& store_;
  const AnomalyRules& rules_;
  const OnLost on_lost_;
  const std::string process_;  // names its record
  std::array<std::atomic<std::uint64_t>, kAnomalyKinds> begun_{};
  std::atomic<std::size_t> count_{0};  // of going_on_
  std::mutex mutex_;                   // guards everything below
  std::map<std::pair<std::string, AnomalyKind>, Entry> going_on_;
  std::size_t listed_ = 0;
  std::deque<NotedAnomaly> ended_;  // the latest first
  bool changed_ = false;            // since it was written down
  Instant written_at_{};
};

}  // namespace sluice
