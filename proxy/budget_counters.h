// The counters of a day and its month in the store, used up together: what is reserved is reserved
// in both or in neither. Reserving also looks whether a mark was passed. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "proxy/budget_term.h"
#include "proxy/config.h"
#include "store/store.h"

namespace sluice {

struct BudgetGrant {
  enum class Tight : std::uint8_t { none, day, month };
  Micros granted = 0;
  Tight tight = Tight::none;  // which of the two had less than was asked for
  BudgetTerm day, month;      // as they were asked, with what was seen of them
  std::string trouble{};      // why the store cannot say; then nothing is granted
};

// As much of the amount as both have left. Answered on the store's thread, or before it returns.
void reserve_both(Store& store, const BudgetConfig& config, const BudgetTerm& day,
                  const BudgetTerm& month, Micros amount, UtcTime now,
                  std::function<void(const BudgetGrant&)> done);

void refund_both(Store& store, const BudgetTerm& day, const BudgetTerm& month, Micros amount);

}  // namespace sluice
