// `sluice status [KEY]`: a table of keys, those that are shut first, and one of jobs.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "policy/breaker.h"
#include "policy/sentence.h"
#include "policy/state_key.h"
#include "policy/units.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/daemon_view.h"
#include "proxy/cli/job_rows.h"
#include "proxy/cli/key_json.h"
#include "proxy/cli/memory.h"
#include "proxy/cli/terminal.h"
#include "proxy/clock.h"
#include "proxy/cost_report.h"
#include "proxy/zone_file.h"

namespace sluice {
namespace {

struct StatusOptions {
  std::optional<std::string> key;
  bool watch = false, json = false;
};

std::uint64_t answered(const Counts& counts) {
  return counts.success + counts.neutral + counts.rate_limited + counts.anti_bot +
         counts.server_error;
}

std::uint64_t failed(const Counts& counts) {
  return counts.rate_limited + counts.anti_bot + counts.server_error + counts.network;
}

Colour colour_of(Phase phase) {
  switch (phase) {
    case Phase::open: return Colour::red;
    case Phase::half_open: return Colour::yellow;
    case Phase::closed: break;
  }
  return Colour::green;
}

// Open, half-open, closed; in each by name. One that cannot be read needs somebody to look at it.
int rank(const KnownKey& known, Instant now) {
  if (!known.state) return 0;
  switch (phase_at(*known.state, now)) {
    case Phase::open: return 0;
    case Phase::half_open: return 1;
    case Phase::closed: break;
  }
  return 2;
}

std::vector<Cell> row_of(const Memory& memory, const KnownKey& known, const DaemonView& daemon,
                         Instant now) {
  if (!known.state) {
    std::vector<Cell> row(12);
    row[0] = {printable(known.key)};
    row[1] = {"unreadable", Colour::red};
    row[3] = {"the record is damaged"};
    return row;
  }
  const HostState state = decayed(policy_of(*memory.rules, known.key).rules, *known.state, now);
  const Phase phase = phase_at(state, now);
  const auto number = [](std::uint64_t n) { return Cell{std::to_string(n)}; };
  const Duration delay = usual_delay(state.pace);
  const std::uint32_t level = std::max(state.level, state.antibot_level);
  const auto busy = daemon.of(known.key);
  return {{printable(known.key)},
          {std::string(phase_word(phase)), colour_of(phase)},
          {phase == Phase::open ? format_duration(state.until - now) : "-"},
          {phase == Phase::closed ? "-" : printable(shut_by(state))},
          number(level),
          {delay > Duration(0) ? format_duration(delay) : "-"},
          busy ? number(busy->in_flight) : Cell{"-"},
          busy ? number(busy->held) : Cell{"-"},
          number(answered(state.counts)),
          number(failed(state.counts)),
          number(state.counts.refused),
          number(state.counts.trips)};
}

std::string table(const Memory& memory, const std::vector<KnownKey>& keys, const DaemonView& daemon,
                  const Terminal& terminal, Instant now) {
  std::vector<std::vector<Cell>> rows;
  rows.reserve(keys.size());
  for (const KnownKey& known : keys) rows.push_back(row_of(memory, known, daemon, now));
  return render_table(terminal,
                      {{"KEY", false, true},
                       {"STATE"},
                       {"LEFT", true},
                       {"REASON", false, true},
                       {"LEVEL", true},
                       {"DELAY", true},
                       {"IN FLIGHT", true},
                       {"HELD", true},
                       {"ANSWERED", true},
                       {"FAILED", true},
                       {"REFUSED", true},
                       {"TRIPS", true}},
                      rows);
}

// What a running daemon adds; null: none says so.
nlohmann::json with_daemon(nlohmann::json key, const std::optional<DaemonView::Busy>& busy) {
  key["in_flight"] = busy ? nlohmann::json(busy->in_flight) : nlohmann::json(nullptr);
  key["held"] = busy ? nlohmann::json(busy->held) : nlohmann::json(nullptr);
  return key;
}

bool is_set(const BudgetConfig& config) { return config.daily > 0 || config.monthly > 0; }

Result<CostReport> spent(const Memory& memory, UtcTime now) {
  const BudgetConfig& config = memory.loaded.config.budget;
  const auto zone = load_zone(config.zone);
  if (!zone) return Error{"budget.zone: " + zone.error()};
  return cost_report(*memory.store, config, *zone, now);
}

std::vector<const TermReport*> limited_terms(const CostReport& report) {
  std::vector<const TermReport*> out;
  for (const TermReport* term : {&report.day, &report.month}) {
    if (term->limit > 0) out.push_back(term);
  }
  return out;
}

// null: there is none, or it cannot be read.
nlohmann::json budget_json(const Result<CostReport>& report, const BudgetConfig& config) {
  if (!is_set(config) || !report) return nullptr;
  nlohmann::json out{{"currency", config.currency}};
  for (const TermReport* term : limited_terms(*report)) {
    out[term->word] = {{"limit", in_money(term->limit)},
                       {"used", in_money(term->used)},
                       {"stopped", term->stopped()},
                       {"resets", iso_time(term->span.to)}};
  }
  return out;
}

std::string as_json(const Memory& memory, const std::vector<KnownKey>& keys,
                    const DaemonView& daemon, const std::vector<NotedAnomaly>& anomalies,
                    const std::vector<ListedJob>& jobs, const Result<CostReport>& costs,
                    const ClockPair& now) {
  nlohmann::json out{{"at", iso_time(now.utc)}, {"keys", nlohmann::json::array()}};
  for (const KnownKey& known : keys)
    out["keys"].push_back(with_daemon(
        key_json(known, policy_of(*memory.rules, known.key).rules, now), daemon.of(known.key)));
  out["anomalies"] = nlohmann::json::array();
  for (const NotedAnomaly& noted : anomalies) out["anomalies"].push_back(noted_json(noted));
  out["jobs"] = nlohmann::json::array();
  for (const ListedJob& job : jobs)
    out["jobs"].push_back(job_json(job, memory.loaded.config.jobs, now));
  out["budget"] = budget_json(costs, memory.loaded.config.budget);
  out["stop"] = memory.stop ? nlohmann::json(*memory.stop) : nlohmann::json(nullptr);
  out["refused_policies"] = nlohmann::json::array();
  for (const Diagnostic& problem : memory.rules->load().problems)
    out["refused_policies"].push_back({{"file", problem.file}, {"problem", problem.message}});
  return to_text(out) + "\n";
}

// What no column can say: the whole sentence, and the origin's own words.
std::string details(const std::vector<KnownKey>& keys, const ClockPair& now) {
  std::string out;
  for (const KnownKey& known : keys) {
    if (!known.state) continue;
    out += "\n" + printable(sentence(known.key, *known.state, now.mono, now.utc)) + ".\n";
    if (!known.state->said.empty())
      out += "The origin said: " + printable(known.state->said) + "\n";
  }
  return out;
}

std::string going_on(const std::vector<NotedAnomaly>& anomalies, const Terminal& terminal) {
  std::string out;
  for (const NotedAnomaly& noted : anomalies) {
    out += "\n" + terminal.paint("anomaly", Colour::yellow) + " since " + iso_time(noted.since) +
           ": " + printable(noted.sentence);
  }
  return out.empty() ? out : out + "\n";
}

std::string refused_policies(const Memory& memory, const Terminal& terminal) {
  std::string out;
  for (const Diagnostic& problem : memory.rules->load().problems) {
    out += terminal.paint("refused policy", Colour::red) + " " +
           printable(problem.file + ":" + std::to_string(problem.line) + ":" +
                     std::to_string(problem.column) + ": " + problem.message) +
           "\n";
  }
  return out.empty() ? out : "\n" + out;
}

// "budget   daily 0.30 of 1.00 USD". Empty: there is none.
std::string budget_line(const Result<CostReport>& report, const BudgetConfig& config,
                        const Terminal& terminal) {
  if (!is_set(config)) return {};
  if (!report) return "\nbudget " + report.error() + "\n";
  std::string out;
  for (const TermReport* term : limited_terms(*report)) {
    out += (out.empty() ? "" : ", ") + std::string(term->word) + " " + format_money(term->used) +
           " of " + format_money(term->limit) + " " + config.currency;
    if (term->stopped()) out += " (stopped)";
  }
  return "\n" + terminal.paint("budget", Colour::faint) + " " + out + "\n";
}

// Whatever the keys say, nothing goes out while it is in force. Empty: it is not.
std::string emergency_stop(const Memory& memory, const Terminal& terminal) {
  if (!memory.stop) return {};
  return terminal.paint("emergency stop", Colour::red) + ": " + printable(*memory.stop) + "\n\n";
}

// One look at the store, written at once.
int show(Memory& memory, const StatusOptions& options, const Terminal& terminal) {
  const ClockPair now = clock_now();
  auto keys = find_keys(memory, options.key, now);
  if (!keys) return complain(keys.error(), kExitUnreachable);
  const auto jobs = options.key ? Result(std::vector<ListedJob>()) : find_jobs(memory, now);
  if (!jobs) return complain(jobs.error(), kExitUnreachable);
  std::stable_sort(keys->begin(), keys->end(), [&](const KnownKey& a, const KnownKey& b) {
    return rank(a, now.mono) < rank(b, now.mono);
  });
  const auto anomalies = find_anomalies(memory, options.key, now);
  if (!anomalies) return complain(anomalies.error(), kExitUnreachable);
  memory.stop = find_stop(memory.loaded.state_dir);
  const DaemonView daemon(memory.loaded.state_dir);
  const Result<CostReport> costs = spent(memory, now.utc);
  const std::string about_jobs = job_table(*jobs, memory.loaded.config, terminal, now);
  std::string out;
  if (options.json) {
    out = as_json(memory, *keys, daemon, *anomalies, *jobs, costs, now);
  } else if (!keys->empty() || !about_jobs.empty()) {
    if (!keys->empty())
      out = table(memory, *keys, daemon, terminal, now.mono) + (about_jobs.empty() ? "" : "\n");
    if (options.key) out += details(*keys, now);
    out += about_jobs + budget_line(costs, memory.loaded.config.budget, terminal);
    out += going_on(*anomalies, terminal) + refused_policies(memory, terminal);
  } else if (options.key) {
    out = "nothing is known about " + *options.key + ": it lets requests through\n";
  } else {
    out =
        "nothing is known about any host yet: start `sluice run`, and point a client at it with "
        "HTTP_PROXY=http://127.0.0.1:7878\n" +
        refused_policies(memory, terminal);
  }
  if (!options.json) out.insert(0, emergency_stop(memory, terminal));
  if (options.watch && terminal.is_terminal) std::cout << "\x1b[H\x1b[J";
  std::cout << out << std::flush;
  return keys->empty() && options.key ? kExitNo : kExitOk;
}

int status(const CommandLine& line, StatusOptions options) {
  if (options.key) {
    const auto key = read_key(*options.key);
    if (!key) return complain(key.error(), kExitUsage);
    options.key = *key;
  }
  OpenedMemory opened = open_memory(line, options.watch ? IfMissing::wait : IfMissing::look);
  if (!opened.memory) return opened.exit_code;
  while (true) {
    const Terminal terminal = Terminal::of_output(line.environment);  // it may have been resized
    const int code = show(*opened.memory, options, terminal);
    if (!options.watch || code == kExitUnreachable || !std::cout) return code;
    std::this_thread::sleep_for(1s);
  }
}

}  // namespace

void add_status_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(
      app, "status", "show what is known about every key, shut ones first, and about jobs",
      "  sluice status\n"
      "  sluice status api.example.com\n"
      "  sluice status --watch\n"
      "  sluice status --json | jq '.keys[] | select(.state == \"open\")'\n");
  add_config_flags(*command, line.flags);
  auto options = std::make_shared<StatusOptions>();
  command->add_option("key", options->key, "a host (all its keys), host:port or policy/NAME")
      ->type_name("KEY");
  command->add_flag("--watch", options->watch, "again every second, until interrupted");
  command->add_flag("--json", options->json, "as JSON");
  command->callback(
      [&line, options] { line.chosen = [&line, options] { return status(line, *options); }; });
}

}  // namespace sluice
