#include "proxy/budget_term.h"

#include <algorithm>
#include <cmath>

#include "store/counter.h"
#include "store/notice.h"

namespace sluice {
namespace {

BudgetTerm term_of(const char* word, const char* counter, double money, double stop_at) {
  BudgetTerm term{word, counter};
  if (money <= 0) return term;
  term.limit = to_micros(money);
  term.most = to_micros(money * stop_at);
  return term;
}

std::string about(const BudgetTerm& term, const BudgetConfig& config) {
  return "the " + std::string(term.word) + " budget of " + format_money(term.limit) + " " +
         config.currency + " is used ";
}

}  // namespace

BudgetTerm daily_term(const BudgetConfig& config) {
  return term_of("daily", "budget/day/", config.daily, config.stop_at);
}

BudgetTerm monthly_term(const BudgetConfig& config) {
  return term_of("monthly", "budget/month/", config.monthly, config.stop_at);
}

std::string stopped_sentence(const BudgetTerm& term, const BudgetConfig& config) {
  return about(term, config) + "up to its stop mark of " +
         std::to_string(std::lround(config.stop_at * 100)) + " %";
}

void look_at_marks(Store& store, BudgetTerm& term, const BudgetConfig& config, UtcTime now) {
  if (term.limit == 0) return;
  const auto total = reserved(store, term.name());
  if (!total) return;
  term.seen = static_cast<Micros>(std::min<std::uint64_t>(*total, kNoLimit));
  const double share = static_cast<double>(term.seen) / static_cast<double>(term.limit);
  const bool stopped = term.seen >= term.most;
  if (!stopped && share < config.alert_at) return;
  const Event event{
      now, EventKind::budget, "",
      stopped ? stopped_sentence(term, config)
              : about(term, config) + "to " + std::to_string(static_cast<int>(share * 100)) + " %"};
  // Each mark has a memory of its own: what is given back must not let it be told again.
  append_once(store, term.counter + std::string(stopped ? "stop" : "alert"), term.span.name, event,
              {});
}

}  // namespace sluice
