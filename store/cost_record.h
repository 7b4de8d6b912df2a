// What requests have cost, by name: of policies, hosts and jobs, one record per kind and period.
// For reports only; what may still be spent stands in counter.h. Processes add what they have seen.
// Bounded: the dearest names have lines of their own, the rest is one line, and no sum is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/cost.h"
#include "policy/time.h"
#include "store/store.h"

namespace sluice {

inline constexpr std::string_view kCostPrefix = "cost/";
inline constexpr std::size_t kMaxCostLines = 100;  // besides the one for the rest
inline constexpr Duration kCostsKept = 62 * 24h;   // after their period, for whoever looks back
inline constexpr std::string_view kOtherCosts = "(others)";

struct CostLine {
  std::string name;
  Micros spent = 0;
  std::uint64_t requests = 0;

  void add(const CostLine& more) {
    spent += more.spent;
    requests += more.requests;
  }
  bool operator==(const CostLine&) const = default;
};

// Adds to the record of this name ("day/2026-03-12/host"). From `ends` on it may be forgotten.
// Answered with 1.
void add_costs(Store& store, std::string_view name, std::vector<CostLine> more, UtcTime ends,
               Completion done);

// The dearest first, the rest last.
Result<std::vector<CostLine>> load_costs(Store& store, std::string_view name);

bool costs_are_over(std::string_view bytes, UtcTime now);

}  // namespace sluice
