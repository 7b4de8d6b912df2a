// What was spent today and this month, of which budget, by whom: for the command line and the admin
// side. Reads the store, so it is the same in every process, and right when none is running.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/cost.h"
#include "policy/result.h"
#include "policy/zone.h"
#include "proxy/config.h"
#include "store/store.h"

namespace sluice {

inline double in_money(Micros amount) { return static_cast<double>(amount) / 1e6; }

struct TermReport {
  const char* word = "";  // "daily"
  Span span;
  Micros limit = 0;            // 0: none
  Micros most = 0;             // that may be spent: stop_at of the limit
  Micros used = 0;             // counts against the limit
  Micros spent = 0;            // by the requests that are listed
  std::uint64_t requests = 0;  // that cost, or might have
  bool stopped() const { return limit > 0 && used >= most; }
  // Reserved ahead by running processes, or lost in a crash: as good as spent.
  Micros reserved() const { return used > spent ? used - spent : 0; }
};

struct SpenderReport {
  std::string kind, name;  // "policy" | "host" | "job"
  Micros today = 0, month = 0;
  std::uint64_t requests_today = 0, requests_month = 0;
};

struct CostReport {
  TermReport day, month;
  // Policies, then hosts, then jobs; in each the dearest of the month first.
  std::vector<SpenderReport> spenders;
};

Result<CostReport> cost_report(Store& store, const BudgetConfig& config, const Zone& zone,
                               UtcTime now);

}  // namespace sluice
