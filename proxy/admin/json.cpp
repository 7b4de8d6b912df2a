#include "proxy/admin/json.h"

#include <algorithm>
#include <cstdio>

#include "policy/sentence.h"
#include "proxy/admin/key_table.h"

namespace sluice {
namespace {

Json time_json(UtcTime time) { return time == UtcTime{} ? Json(nullptr) : Json(iso_time_ms(time)); }

std::int64_t milliseconds(Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(Duration(0), duration)).count();
}

}  // namespace

std::string iso_time_ms(UtcTime time) {
  const auto total = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  const auto days = std::chrono::floor<std::chrono::days>(total);
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  const std::chrono::hh_mm_ss clock(total - days);
  char text[64];
  const int size = std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return {text, static_cast<std::size_t>(size)};
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json counts_json(const Counts& counts) {
  return {{"success", counts.success},
          {"neutral", counts.neutral},
          {"rate_limited", counts.rate_limited},
          {"anti_bot", counts.anti_bot},
          {"server_error", counts.server_error},
          {"network", counts.network},
          {"local", counts.local},
          {"refused", counts.refused},
          {"trips", counts.trips},
          {"junk", counts.junk}};
}

Json key_json(const KeyDetail& key, UtcTime now) {
  const KeyRow& row = key.row;
  Json out;
  out["key"] = row.key;
  out["policy"] = row.policy;
  out["state"] = phase_word(row.phase);
  out["until"] = time_json(row.until);
  out["cooldown_left_ms"] = row.until == UtcTime{} ? 0 : milliseconds(row.until - now);
  out["cause"] = cause_word(row.cause);
  out["sentence"] = key.sentence;
  out["level"] = row.level;
  out["delay_ms"] = milliseconds(row.delay);
  out["in_flight"] = row.in_flight;
  out["held"] = row.held;
  out["requests"] = sent(row.counts);
  out["counts"] = counts_json(row.counts);
  out["status"] = key.status;
  out["opened_at"] = time_json(key.opened_at);
  out["reason"] = key.reason;
  out["said"] = key.said;
  out["pace"] = key.pace;
  out["observed_only"] = key.observed_only;
  return out;
}

Json series_json(const History::Series& series) {
  return {{"requests", series.requests},
          {"refused", series.refused},
          {"limited", series.limited},
          {"delay_ms", series.delay_ms}};
}

Json budget_json(const Budget& budget) {
  Json out{{"currency", budget.currency}, {"periods", Json::array()}, {"lines", Json::array()}};
  for (const BudgetPeriod& period : budget.periods)
    out["periods"].push_back({{"name", period.name},
                              {"limit", period.limit},
                              {"spent", period.spent},
                              {"reserved", period.reserved},
                              {"alert_at", period.alert_at},
                              {"stop_at", period.stop_at},
                              {"resets", time_json(period.resets)}});
  for (const BudgetLine& line : budget.lines)
    out["lines"].push_back({{"kind", line.kind},
                            {"name", line.name},
                            {"spent", line.spent},
                            {"requests", line.requests}});
  return out;
}

Json anomaly_json(const Anomaly& anomaly) {
  return {{"kind", anomaly.kind},
          {"key", anomaly.key},
          {"sentence", anomaly.sentence},
          {"action", anomaly.action},
          {"since", time_json(anomaly.since)},
          {"ended", anomaly.ended ? time_json(*anomaly.ended) : Json(nullptr)}};
}

Json job_json(const Job& job) {
  return {{"name", job.name},           {"run", job.run},
          {"requests", job.requests},   {"max_requests", job.max_requests},
          {"in_flight", job.in_flight}, {"max_concurrency", job.max_concurrency},
          {"failures", job.failures},   {"failures_in_a_row", job.failures_in_a_row},
          {"failed", job.failed},       {"refused", job.refused},
          {"held", job.held},           {"waited_ms", milliseconds(job.waited)},
          {"spent", job.spent}};
}

Json event_json(const StoredEvent& stored) {
  return {{"sequence", stored.sequence},
          {"at", iso_time_ms(stored.event.at)},
          {"kind", event_kind_name(stored.event.kind)},
          {"key", stored.event.key},
          {"text", stored.event.text}};
}

Json stop_json(const StopState& stop) {
  return {{"on", stop.on}, {"reason", stop.reason}, {"since", time_json(stop.since)}};
}

}  // namespace sluice
