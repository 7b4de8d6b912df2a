// What all gates share to notice the unusual: the rules, how often each URL was asked for, and
// whether these are working hours. Knows no key. Any thread; the URLs are split into shards with a
// lock each.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "policy/anomaly.h"
#include "policy/url_sketch.h"
#include "policy/zone.h"
#include "proxy/governor/admission.h"
#include "store/clock_pair.h"

namespace sluice {

class AnomalyWatch {
 public:
  AnomalyWatch(const AnomalyRules& rules, Zone zone, const ClockPair& now);

  const AnomalyRules& rules() const { return rules_; }
  // What a request is told apart by; 0: it is not.
  std::uint64_t url_of(const Ask& ask);
  // For what is told of it: its name, when it was seen before.
  std::string name_of(const Ask& ask, std::uint64_t url, Instant now);
  // Counts it: how often it was asked for lately.
  std::uint32_t count(std::uint64_t url, Instant now);

  // Of the last tick, and enough for what it is used for.
  UtcTime utc(Instant now) const { return UtcTime{now.time_since_epoch() + Duration{offset_}}; }
  bool working_hours() const { return working_hours_; }
  void tick(const ClockPair& now);  // about once a second

 private:
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unique_ptr<UrlSketch> urls;
  };
  Shard& shard(std::uint64_t url) { return shards_[(url >> 24) % shards_.size()]; }

  const AnomalyRules rules_;
  const Zone zone_;
  std::atomic<Duration::rep> offset_{0};  // of UTC from the monotonic clock
  std::atomic<bool> working_hours_{true};
  std::array<Shard, 16> shards_;
};

}  // namespace sluice
