// The numbers as Prometheus reads them (text format 0.0.4). The count of series is bounded: the
// busiest keys and the open ones have series of their own, the rest is summed up under "other". A
// key that comes into its own or goes back does not make a counter jump. Admin thread only.
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "proxy/admin/source.h"

namespace sluice {

struct MetricsInput {
  const std::vector<KeyRow>& rows;
  Totals totals;
  Budget budget;
  std::vector<Anomaly> anomalies;
  std::vector<Job> jobs;
  std::size_t policy_problems = 0;
  bool store_ok = true;
  bool ready = true;
  UtcTime now{};
};

class Metrics {
 public:
  static constexpr std::size_t kBusiest = 50;  // with counters and gauges
  static constexpr std::size_t kShut = 50;     // besides, with gauges
  static constexpr std::size_t kJobs = 50;
  static constexpr std::size_t kReasons = 50;

  std::string page(const MetricsInput& input);

 private:
  static constexpr std::size_t kCounts = 10;
  using Sums = std::array<std::uint64_t, kCounts>;
  static Sums sums_of(const Counts& counts);
  Sums other(const std::vector<KeyRow>& rows, const std::vector<const KeyRow*>& own);

  std::set<std::string, std::less<>> own_;    // keys with counters of their own
  std::vector<std::size_t> others_;           // hashes of those counted together, in order
  std::array<std::int64_t, kCounts> kept_{};  // added to "other", so that it never jumps
  Sums last_other_{};
};

}  // namespace sluice
