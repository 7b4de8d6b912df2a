// How often a duration fell between which bounds, as Prometheus counts it. A plain value.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

struct Histogram {
  std::vector<double> bounds;         // seconds, rising; the last bucket is +Inf and has none
  std::vector<std::uint64_t> counts;  // per bucket, not summed up: bounds.size() + 1 of them
  double sum = 0;                     // seconds
};

}  // namespace sluice
