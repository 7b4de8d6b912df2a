#include "proxy/cost_report.h"

#include <algorithm>

#include "proxy/budget_term.h"
#include "proxy/cost_book.h"
#include "store/cost_record.h"
#include "store/counter.h"

namespace sluice {
namespace {

Result<TermReport> report_of(Store& store, BudgetTerm term, Span span) {
  term.span = std::move(span);
  const auto total = reserved(store, term.name());
  if (!total) return Error{total.error()};
  TermReport report{term.word, term.span, term.limit, term.limit > 0 ? term.most : 0};
  report.used = static_cast<Micros>(std::min<std::uint64_t>(*total, kNoLimit));
  return report;
}

SpenderReport& spender(std::vector<SpenderReport>& spenders, std::string_view kind,
                       const std::string& name) {
  for (SpenderReport& known : spenders)
    if (known.kind == kind && known.name == name) return known;
  return spenders.emplace_back(SpenderReport{std::string(kind), name});
}

// Adds a day's or a month's lines of one kind. Every request has a policy: they make up the sum.
Result<bool> take_in(Store& store, TermReport& term, CostTerm which, std::string_view kind,
                     std::vector<SpenderReport>& spenders) {
  const auto lines = load_costs(store, cost_record_name(which, term.span, kind));
  if (!lines) return Error{lines.error()};
  for (const CostLine& line : *lines) {
    SpenderReport& known = spender(spenders, kind, line.name);
    (which == CostTerm::day ? known.today : known.month) = line.spent;
    (which == CostTerm::day ? known.requests_today : known.requests_month) = line.requests;
    if (kind != kCostKinds.front()) continue;
    term.spent += line.spent;
    term.requests += line.requests;
  }
  return true;
}

}  // namespace

Result<CostReport> cost_report(Store& store, const BudgetConfig& config, const Zone& zone,
                               UtcTime now) {
  auto day = report_of(store, daily_term(config), day_of(zone, config.reset, now));
  if (!day) return Error{day.error()};
  auto month = report_of(store, monthly_term(config), month_of(zone, config.reset, now));
  if (!month) return Error{month.error()};
  CostReport report{std::move(*day), std::move(*month), {}};
  for (const std::string_view kind : kCostKinds) {
    // The month's order counts.
    std::vector<SpenderReport> spenders;
    for (const auto& [term, which] :
         {std::pair{&report.month, CostTerm::month}, std::pair{&report.day, CostTerm::day}}) {
      if (const auto done = take_in(store, *term, which, kind, spenders); !done)
        return Error{done.error()};
    }
    std::move(spenders.begin(), spenders.end(), std::back_inserter(report.spenders));
  }
  return report;
}

}  // namespace sluice
