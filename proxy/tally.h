// What became of the requests of this process since it started: counted where it happens, summed up
// for the admin side. Never falls, decides nothing and is not remembered. Any thread: every thread
// counts in a shard of its own, without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "policy/host_state.h"
#include "policy/outcome.h"
#include "policy/time.h"
#include "proxy/histogram.h"

namespace sluice {

class Tally {
 public:
  // The words of Sluice-Reason (DESIGN §3): first those with which we let nothing through, then
  // what went wrong on the way, last any word that is missing here.
  static constexpr std::array<std::string_view, 25> kReasons = {"emergency-stop",
                                                                "client-denied",
                                                                "auth-required",
                                                                "destination-denied",
                                                                "port-denied",
                                                                "loop",
                                                                "job-limit",
                                                                "job-failed",
                                                                "budget",
                                                                "breaker-open",
                                                                "limit",
                                                                "queue-full",
                                                                "hold-timeout",
                                                                "store-unavailable",
                                                                "overloaded",
                                                                "bad-request",
                                                                "head-timeout",
                                                                "dns",
                                                                "connect",
                                                                "connect-timeout",
                                                                "tls",
                                                                "request-timeout",
                                                                "origin-closed",
                                                                "origin-timeout",
                                                                "other"};
  static constexpr std::size_t kOurs = 15;

  struct Sums {
    Counts outcomes;  // with `refused` and `trips`
    std::array<std::uint64_t, kReasons.size()> refused{};
    Histogram hold, overhead;
    std::uint64_t pace_changes = 0;
    std::uint64_t would_wait = 0, would_refuse = 0;  // by policies that only observe
  };

  void refused(std::string_view reason);
  void ended(const Outcome& outcome);
  void tripped();
  void pace_changed();
  void observed(bool would_wait);
  void held(Duration wait);
  void added(Duration overhead);
  Sums sums() const;

 private:
  static constexpr std::size_t kShards = 16, kKinds = 7;
  using Counter = std::atomic<std::uint64_t>;
  template <std::size_t N>
  struct Bins {
    std::array<Counter, N + 1> counts{};
    Counter sum{};  // µs
  };
  // Seconds. A hold ends after hold.max_wait, 15 s unless told otherwise.
  static constexpr std::array kHold = {0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0};
  static constexpr std::array kOverhead = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                           0.005,   0.01,   0.025,   0.05,   0.1,   1.0};
  struct alignas(64) Shard {
    std::array<Counter, kKinds> outcomes{};
    Counter trips{}, junk{}, pace_changes{}, would_wait{}, would_refuse{};
    std::array<Counter, kReasons.size()> refused{};
    Bins<kHold.size()> hold;
    Bins<kOverhead.size()> overhead;
  };

  Shard& shard() { return shards_[shard_of_this_thread()]; }
  static std::size_t shard_of_this_thread();

  std::array<Shard, kShards> shards_;
};

}  // namespace sluice
