#include "proxy/cli/job_rows.h"

#include <algorithm>
#include <map>

#include "policy/cost.h"
#include "policy/sentence.h"
#include "policy/units.h"

namespace sluice {
namespace {

constexpr Duration kShown = 24h;

const JobRules& rules_of(const std::string& name, const JobsConfig& config) {
  const auto found = config.named.find(name);
  return found == config.named.end() ? config.every : found->second;
}

std::string of_most(std::uint64_t count, std::uint64_t most) {
  return std::to_string(count) + (most > 0 ? " of " + std::to_string(most) : "");
}

std::vector<Cell> row_of(const ListedJob& job, const Config& config, const ClockPair& now) {
  const JobState& state = *job.state;
  return {{printable(job.name)},
          {state.failed ? "refused" : "ok", state.failed ? Colour::red : Colour::green},
          {of_most(state.requests, rules_of(job.name, config.jobs).max_requests)},
          {std::to_string(state.failures)},
          {std::to_string(state.failures_in_a_row)},
          {std::to_string(state.held)},
          {state.waited > Duration(0) ? format_duration(state.waited) : "-"},
          {std::to_string(state.refused)},
          {state.cost > 0 ? format_money(state.cost) + " " + config.budget.currency : "-"},
          {format_duration(std::max(now.mono - state.last_seen, Duration(0))) + " ago"}};
}

}  // namespace

std::string job_table(std::vector<ListedJob> jobs, const Config& config, const Terminal& terminal,
                      const ClockPair& now) {
  std::map<std::string, Instant> latest;
  for (const ListedJob& job : jobs) {
    if (job.state) latest[job.name] = std::max(latest[job.name], job.state->started);
  }
  std::erase_if(jobs, [&](const ListedJob& job) {
    return !job.state || now.mono - job.state->last_seen > kShown ||
           job_run_is_past(*job.state, latest[job.name]);
  });
  if (jobs.empty()) return {};
  std::stable_sort(jobs.begin(), jobs.end(), [](const ListedJob& a, const ListedJob& b) {
    return a.state->last_seen > b.state->last_seen;
  });
  std::vector<std::vector<Cell>> rows;
  rows.reserve(jobs.size());
  for (const ListedJob& job : jobs) rows.push_back(row_of(job, config, now));
  return render_table(terminal,
                      {{"JOB", false, true},
                       {"STATE"},
                       {"REQUESTS", true},
                       {"FAILED", true},
                       {"IN A ROW", true},
                       {"HELD", true},
                       {"WAITED", true},
                       {"REFUSED", true},
                       {"SPENT", true},
                       {"LAST HEARD OF", true}},
                      rows);
}

nlohmann::json job_json(const ListedJob& job, const JobsConfig& config, const ClockPair& now) {
  if (!job.state) return {{"name", job.name}, {"state", "unreadable"}};
  const JobState& state = *job.state;
  const JobRules& rules = rules_of(job.name, config);
  return {{"name", job.name},
          {"state", state.failed ? "refused" : "ok"},
          {"run", state.run},
          {"requests", state.requests},
          {"max_requests", rules.max_requests},
          {"max_concurrency", rules.max_concurrency},
          {"successes", state.successes},
          {"failures", state.failures},
          {"failures_in_a_row", state.failures_in_a_row},
          {"refused", state.refused},
          {"held", state.held},
          {"waited_s", static_cast<double>(state.waited / 1us) / 1e6},
          {"spent", static_cast<double>(state.cost) / 1e6},
          {"last_seen", iso_time(now.utc + (state.last_seen - now.mono))}};
}

}  // namespace sluice
