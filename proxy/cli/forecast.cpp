#include "proxy/cli/forecast.h"

#include <algorithm>

#include "policy/breaker.h"
#include "policy/limit_window.h"
#include "policy/pacer.h"
#include "policy/units.h"
#include "proxy/access.h"
#include "proxy/budget_term.h"
#include "proxy/cli/daemon_view.h"
#include "proxy/cost_report.h"
#include "proxy/governor/allowances.h"
#include "proxy/job_table.h"
#include "proxy/zone_file.h"
#include "store/limit_record.h"

namespace sluice {
namespace {

using Act = Decision::Act;

std::string retry_after(Duration left) {
  return "Retry-After: " + std::to_string(std::max<std::int64_t>(
                               1, std::chrono::ceil<std::chrono::seconds>(left).count()));
}

Forecast refused(const std::string& why) {
  return {false, "refuse", "it would be refused: " + why};
}

Forecast by_breaker(const Foreseeable& request, const ClockPair& now) {
  const Rules& rules = *request.match.rules;
  const Decision decision = decide(rules, *request.known.state, now.mono, {now.mono}).decision;
  const Duration left = decision.until - now.mono;
  Forecast out;
  switch (decision.act) {
    case Act::forward: return {true, "forward", "it would be forwarded"};
    case Act::probe:
      out = {true, "probe",
             "it would be forwarded as the probe that decides whether others may follow"};
      break;
    case Act::hold:
      out = {true, "hold",
             "it would be held for up to " + format_duration(left) + ", then asked about again"};
      break;
    case Act::refuse: out = refused("503 breaker-open, " + retry_after(left)); break;
  }
  if (rules.mode != Mode::observe) return out;
  return {true, "forward",
          "it would be forwarded, because the policy only observes; enforced, " + out.text};
}

// What the breaker lets go may have used up the policy's `limits`.
std::optional<Forecast> by_limits(Memory& memory, const Foreseeable& request,
                                  const ClockPair& now) {
  const Rules& rules = *request.match.rules;
  const auto& limits = rules.limits.requests;
  if (limits.empty()) return std::nullopt;
  const auto history = limit_history(*memory.store, request.known.key, now);
  if (!history) return refused("503 store-unavailable, " + history.error());
  const Duration left = next_free(limits, *history, now.mono) - now.mono;
  if (left <= Duration(0)) return std::nullopt;
  if (left > rules.hold.max_wait)
    return refused("429 limit, the policy's limits are used up, " + retry_after(left));
  return Forecast{true, "hold",
                  "it would be held for " + format_duration(left) +
                      ", because the policy's limits are used up until then"};
}

// As of the latest write. How much of a limit is used is not always in it: then only a pause is.
Instant pace_opens_by_memory(const Rules& rules, const PaceMemory& pace, Instant now) {
  if (rules.pace.adapt != Adapt::learned) return now;
  if (pace.used.back().count == 0) return pace.hold;
  return pace_opens(rules, pace_restored(rules, pace, now), now);
}

std::optional<Forecast> by_pace(const Foreseeable& request, const ClockPair& now) {
  const Rules& rules = *request.match.rules;
  const Instant opens = pace_opens_by_memory(rules, request.known.state->pace, now.mono);
  const Duration left = opens - now.mono;
  if (left <= Duration(0)) return std::nullopt;
  if (left > rules.hold.max_wait)
    return refused("503 hold-timeout, the pace that was learned lets nothing through, " +
                   retry_after(left));
  return Forecast{
      true, "hold",
      "it would be held for up to " + format_duration(left) + ", by the pace that was learned"};
}

// Those who are on their way or wait. Only a daemon knows of them: without one there are none.
std::optional<Forecast> by_others(const Memory& memory, const Foreseeable& request) {
  const Rules& rules = *request.match.rules;
  const DaemonView daemon(memory.loaded.state_dir);
  const auto busy = daemon.of(request.known.key).value_or(DaemonView::Busy{});
  const std::uint64_t places = rules.pace.max_concurrency;
  const bool full = places > 0 && busy.in_flight >= places;
  if (!full && busy.held == 0) return std::nullopt;
  const std::string why = full ? "pace.max_concurrency = " + std::to_string(places) + " is used up"
                               : "others wait before it";
  const std::string held = std::to_string(busy.held);
  if (busy.held >= rules.hold.max_queue)
    return refused("503 queue-full, " + held + " wait already");
  if (rules.hold.max_wait <= Duration(0)) return refused("503 hold-timeout, " + why);
  return Forecast{true, "hold",
                  "it would be held for up to " + format_duration(rules.hold.max_wait) +
                      ", because " + why + " (" + held + " waiting)"};
}

// What requests keep between them, whenever the one before went.
std::string spacing_words(const Foreseeable& request) {
  const PaceRules& pace = request.match.rules->pace;
  const bool linear = pace.adapt == Adapt::linear;
  const Duration spacing =
      pace.min_delay + (linear ? request.known.state->pace.delay : Duration(0));
  return spacing > Duration(0)
             ? ", at least " + format_duration(spacing) + " after the one before it"
             : std::string();
}

std::optional<Forecast> by_budget(Memory& memory, const Foreseeable& request,
                                  const ClockPair& now) {
  const BudgetConfig& config = memory.loaded.config.budget;
  const auto cost = cost_of(request.match.rules->cost, request.host, request.path, request.tunnel);
  if (!cost) return std::nullopt;
  const auto zone = load_zone(config.zone);
  if (!zone) return refused("budget.zone: " + zone.error());
  const auto report = cost_report(*memory.store, config, *zone, now.utc);
  if (!report) return refused("503 store-unavailable, " + report.error());
  const Micros price = std::max<Micros>(cost->price, 1);  // an open one costs something
  const auto stops = [&](const TermReport& term) {
    return term.limit > 0 && term.used + price > term.most;
  };
  const bool month = stops(report->month);
  if (!month && !stops(report->day)) return std::nullopt;
  const TermReport& term = month ? report->month : report->day;
  return refused("429 budget, " +
                 stopped_sentence(month ? monthly_term(config) : daily_term(config), config) +
                 ", " + retry_after(term.span.to - now.utc));
}

// The table is this command's own, and never written back.
std::optional<Forecast> by_job(Memory& memory, const Foreseeable& request, const ClockPair& now) {
  if (request.job.empty()) return std::nullopt;
  JobTable jobs(memory.store.get(), memory.loaded.config.jobs);
  const auto entrance = jobs.enter({.name = request.job}, now);
  if (!entrance.refusal) return std::nullopt;
  const Refusal& refusal = *entrance.refusal;
  return refused(std::to_string(refusal.status) + " " + std::string(refusal.reason) + ", " +
                 refusal.detail);
}

std::optional<Forecast> by_access(const Memory& memory, const Foreseeable& request) {
  const Config& config = memory.loaded.config;
  if (const auto access = AccessRules::make(config.access, {})) {
    if (const Verdict verdict = access->host(request.host); !verdict)
      return refused("403 destination-denied, " + verdict.why);
  }
  const auto& ports = config.proxy.connect_ports;
  const bool allowed = std::any_of(ports.begin(), ports.end(), [&](const PortRange& range) {
    return range.first <= request.port && request.port <= range.last;
  });
  if (!request.https || allowed) return std::nullopt;
  return refused("403 port-denied, CONNECT to port " + std::to_string(request.port) +
                 " is not in proxy.connect_ports");
}

}  // namespace

// DESIGN §3: the first that objects answers.
Forecast forecast(Memory& memory, const Foreseeable& request, const ClockPair& now) {
  if (memory.stop) return refused("503 emergency-stop, " + *memory.stop);
  if (auto denied = by_access(memory, request)) return *std::move(denied);
  if (auto capped = by_job(memory, request, now)) return *std::move(capped);
  const bool enforced = request.match.rules->mode == Mode::enforce;
  if (enforced) {
    if (auto stopped = by_budget(memory, request, now)) return *std::move(stopped);
  }
  Forecast out = by_breaker(request, now);
  const bool asks = out.word == "forward" || out.word == "probe";
  if (!asks || !enforced) return out;
  if (auto used_up = by_limits(memory, request, now)) return *std::move(used_up);
  if (auto slowed = by_pace(request, now)) return *std::move(slowed);
  if (auto behind = by_others(memory, request)) return *std::move(behind);
  out.text += spacing_words(request);
  return out;
}

}  // namespace sluice
