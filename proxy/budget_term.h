// One term of the budget, the day or the month: its limit, its counter in the store, its marks and
// the words about them. A value; whoever holds it guards it.
#pragma once

#include <limits>
#include <string>

#include "policy/cost.h"
#include "policy/zone.h"
#include "proxy/config.h"
#include "store/store.h"

namespace sluice {

inline constexpr Micros kNoLimit = std::numeric_limits<Micros>::max();

struct BudgetTerm {
  const char* word = "";     // "daily"
  const char* counter = "";  // "budget/day/"
  Micros limit = 0;          // 0: none
  Micros most = kNoLimit;    // that may be spent: stop_at of the limit
  Span span{};
  Micros seen = 0;  // of the counter, when it was last read
  Micros owed = 0;  // spent, and not yet in the store

  std::string name() const { return counter + span.name; }
};

BudgetTerm daily_term(const BudgetConfig& config);
BudgetTerm monthly_term(const BudgetConfig& config);

// "the daily budget of 10.00 USD is used up to its stop mark of 80 %"
std::string stopped_sentence(const BudgetTerm& term, const BudgetConfig& config);

// Reads the counter, and appends an event when a mark was passed: one per mark and term, whoever
// passes it.
void look_at_marks(Store& store, BudgetTerm& term, const BudgetConfig& config, UtcTime now);

}  // namespace sluice
