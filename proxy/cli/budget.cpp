// `sluice budget`: what was spent today and this month, by policy, host and job.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "policy/sentence.h"
#include "policy/units.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/key_json.h"
#include "proxy/cli/memory.h"
#include "proxy/cli/terminal.h"
#include "proxy/clock.h"
#include "proxy/cost_report.h"
#include "proxy/zone_file.h"

namespace sluice {
namespace {

struct BudgetOptions {
  bool today = false, json = false;
};

nlohmann::json term_json(const TermReport& term) {
  return {{"name", term.span.name},          {"limit", in_money(term.limit)},
          {"stop", in_money(term.most)},     {"used", in_money(term.used)},
          {"spent", in_money(term.spent)},   {"reserved", in_money(term.reserved())},
          {"requests", term.requests},       {"stopped", term.stopped()},
          {"resets", iso_time(term.span.to)}};
}

std::string as_json(const CostReport& report, const BudgetConfig& config, bool today) {
  nlohmann::json out{{"currency", config.currency}, {"day", term_json(report.day)}};
  if (!today) out["month"] = term_json(report.month);
  out["lines"] = nlohmann::json::array();
  for (const SpenderReport& line : report.spenders) {
    nlohmann::json item{
        {"kind", line.kind},
        {"name", line.name},
        {"today", {{"spent", in_money(line.today)}, {"requests", line.requests_today}}}};
    if (!today)
      item["month"] = {{"spent", in_money(line.month)}, {"requests", line.requests_month}};
    out["lines"].push_back(std::move(item));
  }
  return to_text(out) + "\n";
}

// "daily    6.42 of 10.00 USD spent, 0.04 reserved ahead; stops at 8.00, begins anew in 3h 20m"
std::string sentence_of(const TermReport& term, const BudgetConfig& config,
                        const Terminal& terminal, UtcTime now) {
  std::string out(term.word);
  out.resize(9, ' ');
  out += format_money(term.spent);
  if (term.limit > 0) out += " of " + format_money(term.limit);
  out += " " + config.currency + " spent";
  if (term.limit == 0) return out + ", no limit\n";
  if (term.reserved() > 0) out += ", " + format_money(term.reserved()) + " reserved ahead";
  const std::string stop = "stops at " + format_money(term.most);
  const double share = static_cast<double>(term.used) / static_cast<double>(term.limit);
  const Colour colour = term.stopped()             ? Colour::red
                        : share >= config.alert_at ? Colour::yellow
                                                   : Colour::green;
  return out + "; " + terminal.paint(term.stopped() ? "stopped" : stop, colour) +
         ", begins anew in " + format_duration(term.span.to - now) + "\n";
}

std::string table(const CostReport& report, const Terminal& terminal, bool today) {
  std::vector<Column> columns = {
      {"BY"}, {"NAME", false, true}, {"TODAY", true}, {"REQUESTS", true}};
  if (!today) {
    columns.push_back({"MONTH", true});
    columns.push_back({"REQUESTS", true});
  }
  std::vector<std::vector<Cell>> rows;
  for (const SpenderReport& line : report.spenders) {
    std::vector<Cell> row = {{line.kind},
                             {printable(line.name)},
                             {format_money(line.today)},
                             {std::to_string(line.requests_today)}};
    if (!today) {
      row.push_back({format_money(line.month)});
      row.push_back({std::to_string(line.requests_month)});
    }
    rows.push_back(std::move(row));
  }
  return render_table(terminal, columns, rows);
}

std::string as_text(const CostReport& report, const BudgetConfig& config, const Terminal& terminal,
                    bool today, UtcTime now) {
  std::string out = sentence_of(report.day, config, terminal, now);
  if (!today) out += sentence_of(report.month, config, terminal, now);
  if (config.daily <= 0 && config.monthly <= 0)
    out += "No budget is set: [budget] daily and monthly in sluice.toml hold what costs back.\n";
  if (report.spenders.empty() && report.day.used + report.month.used > 0)
    return out + "What it went to is written down within a second.\n";
  if (report.spenders.empty())
    return out + "Nothing has cost anything yet; [cost] in a policy says what a request costs.\n";
  out += "\n" + table(report, terminal, today);
  if (report.day.reserved() > 0 || report.month.reserved() > 0)
    out +=
        "\nReserved ahead: held by running proxies, or lost in a crash; it counts as spent. The "
        "lines are written\nonce a second: a crash loses that second of them, never of the "
        "budget.\n";
  return out;
}

void keep_todays(CostReport& report) {
  std::erase_if(report.spenders,
                [](const SpenderReport& line) { return line.requests_today == 0; });
  for (auto from = report.spenders.begin(); from != report.spenders.end();) {
    const auto to = std::find_if(from, report.spenders.end(), [&](const SpenderReport& line) {
      return line.kind != from->kind;
    });
    std::stable_sort(
        from, to, [](const SpenderReport& a, const SpenderReport& b) { return a.today > b.today; });
    from = to;
  }
}

int budget(const CommandLine& line, const BudgetOptions& options) {
  OpenedMemory opened = open_memory(line, IfMissing::look);
  if (!opened.memory) return opened.exit_code;
  const BudgetConfig& config = opened.memory->loaded.config.budget;
  const auto zone = load_zone(config.zone);
  if (!zone) return complain("budget.zone: " + zone.error(), kExitUsage);
  const UtcTime now = utc_now();
  auto report = cost_report(*opened.memory->store, config, *zone, now);
  if (!report) return complain(report.error(), kExitUnreachable);
  if (options.today) keep_todays(*report);
  std::cout << (options.json ? as_json(*report, config, options.today)
                             : as_text(*report, config, Terminal::of_output(line.environment),
                                       options.today, now));
  return kExitOk;
}

}  // namespace

void add_budget_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "budget", "report what was spent, by policy, host and job",
                  "  sluice budget\n"
                  "  sluice budget --today\n"
                  "  sluice budget --json | jq '.lines[] | select(.kind == \"job\")'\n");
  add_config_flags(*command, line.flags);
  auto options = std::make_shared<BudgetOptions>();
  command->add_flag("--today", options->today, "only today's");
  command->add_flag("--json", options->json, "as JSON");
  command->callback(
      [&line, options] { line.chosen = [&line, options] { return budget(line, *options); }; });
}

}  // namespace sluice
