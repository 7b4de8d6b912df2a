#include "proxy/cli/exec_summary.h"

#include "policy/cost.h"
#include "policy/units.h"

namespace sluice {

std::string run_summary(const std::string& job, const JobState& state,
                        const std::string& currency) {
  return "job " + job + ": " + std::to_string(state.requests) +
         (state.requests == 1 ? " request, " : " requests, ") + std::to_string(state.held) +
         " held, " + std::to_string(state.refused) + " refused, waited " +
         format_duration(state.waited) + ", cost " + format_money(state.cost) + " " + currency;
}

}  // namespace sluice
