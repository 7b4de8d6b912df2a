#include "proxy/admin/metrics.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <utility>

#include "policy/sentence.h"
#include "proxy/admin/key_table.h"

namespace sluice {
namespace {

constexpr std::string_view kOther = "other";

// In the order of Metrics::Sums.
constexpr std::string_view kCountNames[] = {"success",      "neutral", "rate_limited", "anti_bot",
                                            "server_error", "network", "local",        "refused",
                                            "trips",        "junk"};
constexpr std::size_t kOutcomes = 7, kRefused = 7, kTrips = 8, kJunk = 9;

class Text {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  void about(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    out_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  }
  void value(Labels labels, std::uint64_t value) { line("", labels, std::to_string(value)); }
  void value(Labels labels, double value) { line("", labels, number(value)); }
  void histogram(const Histogram& histogram) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      sum += histogram.counts[i];
      const bool last = i >= histogram.bounds.size();
      line("_bucket", {{"le", last ? "+Inf" : number(histogram.bounds[i])}}, std::to_string(sum));
    }
    if (histogram.counts.empty()) line("_bucket", {{"le", "+Inf"}}, "0");
    line("_sum", {}, number(histogram.sum));
    line("_count", {}, std::to_string(sum));
  }
  std::string take() { return std::move(out_); }

 private:
  static std::string number(double value) {
    char text[32];
    return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, "%.15g", value))};
  }
  void line(std::string_view suffix, Labels labels, std::string_view value) {
    out_.append(name_).append(suffix);
    char open = '{';
    for (const auto& [name, text] : labels) {
      out_.append(1, open).append(name).append("=\"");
      for (const char c : text) label_char(c);
      out_ += '"';
      open = ',';
    }
    if (open == ',') out_ += '}';
    out_.append(" ").append(value).append("\n");
  }
  // Host names are ASCII; whatever else got here must not break the page.
  void label_char(char c) {
    if (c == '\\' || c == '"') out_ += '\\';
    out_ += c >= 0x20 && c < 0x7f ? c : '?';
  }

  std::string out_, name_;
};

// A host that is called "other" is counted there.
bool may_have_series(const KeyRow& row) { return row.key != kOther; }

template <class Before>
std::vector<const KeyRow*> first(std::vector<const KeyRow*> rows, std::size_t count,
                                 Before before) {
  const std::size_t kept = std::min(count, rows.size());
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(kept), rows.end(),
                    before);
  rows.resize(kept);
  return rows;
}

std::vector<const KeyRow*> busiest(const std::vector<KeyRow>& rows) {
  std::vector<const KeyRow*> all;
  for (const KeyRow& row : rows)
    if (may_have_series(row)) all.push_back(&row);
  return first(std::move(all), Metrics::kBusiest, [](const KeyRow* a, const KeyRow* b) {
    const auto left = sent(a->counts), right = sent(b->counts);
    return left != right ? left > right : a->key < b->key;
  });
}

// Those that stay shut longest are the ones to be told about.
std::vector<const KeyRow*> shut(const std::vector<KeyRow>& rows) {
  std::vector<const KeyRow*> all;
  for (const KeyRow& row : rows)
    if (row.phase != Phase::closed && may_have_series(row)) all.push_back(&row);
  return first(std::move(all), Metrics::kShut, [](const KeyRow* a, const KeyRow* b) {
    return a->until != b->until ? a->until > b->until : a->key < b->key;
  });
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(std::max(Duration(0), duration)).count();
}

void write_process(Text& text, const MetricsInput& in) {
  text.about("sluice_build_info", "gauge", "Always 1; the version is in the label.");
  text.value({{"version", SLUICE_VERSION}}, std::uint64_t{1});
  text.about("sluice_start_time_seconds", "gauge", "When the proxy started, since the epoch.");
  text.value({}, seconds(in.totals.started.time_since_epoch()));
  text.about("sluice_ready", "gauge", "1 when requests are served.");
  text.value({}, std::uint64_t{in.ready});
  text.about("sluice_emergency_stop", "gauge", "1 while everything is stopped by an operator.");
  text.value({}, std::uint64_t{in.totals.stop.on});
  text.about("sluice_clients", "gauge", "Client connections.");
  text.value({}, in.totals.clients);
  text.about("sluice_requests_in_flight", "gauge", "Requests that wait for an origin's answer.");
  text.value({}, in.totals.in_flight);
  text.about("sluice_requests_held", "gauge", "Requests that wait inside the proxy.");
  text.value({}, in.totals.held);
  text.about("sluice_hold_seconds", "histogram", "How long requests were held.");
  text.histogram(in.totals.hold);
  text.about("sluice_overhead_seconds", "histogram", "What the proxy itself added to a request.");
  text.histogram(in.totals.overhead);
  text.about("sluice_policy_problems", "gauge", "Mistakes in policy files that were refused.");
  text.value({}, std::uint64_t{in.policy_problems});
  text.about("sluice_store_up", "gauge", "1 while the store works.");
  text.value({}, std::uint64_t{in.store_ok});
  text.about("sluice_store_failures_total", "counter", "Reads and writes the store refused.");
  text.value({}, in.totals.store_failures);
  text.about("sluice_alerts_sent_total", "counter", "Messages with alerts that were taken.");
  text.value({}, in.totals.alerts_sent);
  text.about("sluice_alert_failures_total", "counter", "Tries to deliver an alert that failed.");
  text.value({}, in.totals.alerts_failed);
  text.about("sluice_alerts_dropped_total", "counter", "Alerts that were given up.");
  text.value({}, in.totals.alerts_dropped);
  text.about("sluice_alerts_waiting", "gauge", "Alerts that wait to be delivered.");
  text.value({}, in.totals.alerts_waiting);
}

void write_budget(Text& text, const MetricsInput& in) {
  if (in.budget.periods.empty()) return;
  const auto each = [&](std::string_view name, std::string_view help, double BudgetPeriod::*what) {
    text.about(name, "gauge", help);
    for (const BudgetPeriod& period : in.budget.periods)
      text.value({{"period", period.name}, {"currency", in.budget.currency}}, period.*what);
  };
  each("sluice_budget_limit", "What may be spent in a period.", &BudgetPeriod::limit);
  each("sluice_budget_spent", "What was spent in this period.", &BudgetPeriod::spent);
  each("sluice_budget_reserved", "What is reserved and not spent yet.", &BudgetPeriod::reserved);
}

void write_jobs(Text& text, const MetricsInput& in) {
  if (in.jobs.empty()) return;
  // A series has a name once: runs of a job that go on at the same time are one here.
  std::vector<Job> jobs;
  for (const Job& job : in.jobs) {
    if (!jobs.empty() && jobs.back().name == job.name) {
      jobs.back().requests += job.requests;
      jobs.back().failed |= job.failed;
    } else if (jobs.size() < Metrics::kJobs) {
      jobs.push_back(job);
    } else {
      break;
    }
  }
  text.about("sluice_job_requests_total", "counter", "Requests of a job.");
  for (const Job& job : jobs) text.value({{"job", job.name}}, job.requests);
  text.about("sluice_job_failed", "gauge", "1 for a job that is refused until it restarts.");
  for (const Job& job : jobs) text.value({{"job", job.name}}, std::uint64_t{job.failed});
}

void write_gauges(Text& text, const std::vector<const KeyRow*>& rows, UtcTime now) {
  text.about("sluice_key_state", "gauge", "1 for the state a key is in, 0 for the others.");
  for (const KeyRow* row : rows)
    for (const Phase phase : {Phase::closed, Phase::open, Phase::half_open})
      text.value({{"key", row->key}, {"policy", row->policy}, {"state", phase_word(phase)}},
                 std::uint64_t{row->phase == phase});
  const auto each = [&](std::string_view name, std::string_view help, auto value) {
    text.about(name, "gauge", help);
    for (const KeyRow* row : rows) text.value({{"key", row->key}}, value(*row));
  };
  each("sluice_key_cooldown_seconds", "What is left of a key's cooldown.",
       [&](const KeyRow& row) { return row.until == UtcTime{} ? 0.0 : seconds(row.until - now); });
  each("sluice_key_delay_seconds", "The spacing between requests to a key.",
       [](const KeyRow& row) { return seconds(row.delay); });
  each("sluice_key_backoff_level", "How often in a row the cooldown grew.",
       [](const KeyRow& row) { return std::uint64_t{row.level}; });
  each("sluice_key_held", "Requests to a key that wait inside the proxy.",
       [](const KeyRow& row) { return std::uint64_t{row.held}; });
  each("sluice_key_in_flight", "Requests to a key that wait for an answer.",
       [](const KeyRow& row) { return std::uint64_t{row.in_flight}; });
}

void write_states(Text& text, const std::vector<KeyRow>& rows) {
  std::uint64_t count[3] = {};
  for (const KeyRow& row : rows) ++count[static_cast<std::size_t>(row.phase)];
  text.about("sluice_keys", "gauge", "Keys by their state.");
  for (const Phase phase : {Phase::closed, Phase::open, Phase::half_open})
    text.value({{"state", phase_word(phase)}}, count[static_cast<std::size_t>(phase)]);
}

}  // namespace

Metrics::Sums Metrics::sums_of(const Counts& counts) {
  return {counts.success, counts.neutral, counts.rate_limited, counts.anti_bot, counts.server_error,
          counts.network, counts.local,   counts.refused,      counts.trips,    counts.junk};
}

Metrics::Sums Metrics::other(const std::vector<KeyRow>& rows,
                             const std::vector<const KeyRow*>& own) {
  std::set<std::string, std::less<>> now;
  for (const KeyRow* row : own) now.insert(row->key);
  std::array<std::int64_t, kCounts> rest{};
  std::vector<std::size_t> others;
  for (const KeyRow& row : rows) {
    const Sums sums = sums_of(row.counts);
    const std::size_t hash = std::hash<std::string>{}(row.key);
    const bool has = now.contains(row.key), had = own_.contains(row.key);
    const bool comes = has && std::binary_search(others_.begin(), others_.end(), hash);
    if (!has) others.push_back(hash);
    for (std::size_t i = 0; i < kCounts; ++i) {
      const auto value = static_cast<std::int64_t>(sums[i]);
      if (!has) rest[i] += value;
      if (comes) kept_[i] += value;
      if (had && !has) kept_[i] -= value;
    }
  }
  own_ = std::move(now);
  std::sort(others.begin(), others.end());
  others_ = std::move(others);
  Sums out{};
  for (std::size_t i = 0; i < kCounts; ++i) {
    // Keys that were forgotten would take it back: it stands still instead.
    const auto last = static_cast<std::int64_t>(last_other_[i]);
    if (rest[i] + kept_[i] < last) kept_[i] = last - rest[i];
    out[i] = last_other_[i] = static_cast<std::uint64_t>(rest[i] + kept_[i]);
  }
  return out;
}

std::string Metrics::page(const MetricsInput& in) {
  Text text;
  write_process(text, in);
  write_states(text, in.rows);
  write_budget(text, in);
  write_jobs(text, in);

  text.about("sluice_anomalies_active", "gauge", "Anomalies that go on.");
  text.value({}, static_cast<std::uint64_t>(
                     std::count_if(in.anomalies.begin(), in.anomalies.end(),
                                   [](const Anomaly& anomaly) { return !anomaly.ended; })));
  text.about("sluice_anomalies_total", "counter", "Anomalies that began, by kind.");
  for (const AnomalyCount& one : in.totals.anomalies) text.value({{"kind", one.kind}}, one.count);
  const Sums all = sums_of(in.totals.outcomes);
  text.about("sluice_outcomes_total", "counter", "How exchanges with origins ended.");
  for (std::size_t i = 0; i < kOutcomes; ++i) text.value({{"outcome", kCountNames[i]}}, all[i]);
  text.about("sluice_refusals_total", "counter", "Requests the proxy refused, by its reason.");
  for (std::size_t i = 0; i < std::min(in.totals.refusals.size(), kReasons); ++i)
    text.value({{"reason", in.totals.refusals[i].reason}}, in.totals.refusals[i].count);
  text.about("sluice_pace_changes_total", "counter",
             "How often what was learned of a key changed.");
  text.value({}, in.totals.pace_changes);
  text.about(
      "sluice_observed_total", "counter",
      "Requests let through by policies that only observe, by what else had become of them.");
  text.value({{"instead", "wait"}}, in.totals.would_wait);
  text.value({{"instead", "refuse"}}, in.totals.would_refuse);

  const std::vector<const KeyRow*> busy = busiest(in.rows);
  std::vector<const KeyRow*> shown = busy;
  for (const KeyRow* row : shut(in.rows))
    if (std::find(busy.begin(), busy.end(), row) == busy.end()) shown.push_back(row);
  write_gauges(text, shown, in.now);

  const Sums rest = other(in.rows, busy);
  text.about("sluice_key_outcomes_total", "counter", "How exchanges ended, by key.");
  for (const KeyRow* row : busy) {
    const Sums sums = sums_of(row->counts);
    for (std::size_t i = 0; i < kOutcomes; ++i)
      text.value({{"key", row->key}, {"outcome", kCountNames[i]}}, sums[i]);
  }
  for (std::size_t i = 0; i < kOutcomes; ++i)
    text.value({{"key", kOther}, {"outcome", kCountNames[i]}}, rest[i]);
  const auto counter = [&](std::string_view name, std::string_view help, std::size_t which) {
    text.about(name, "counter", help);
    for (const KeyRow* row : busy) text.value({{"key", row->key}}, sums_of(row->counts)[which]);
    text.value({{"key", kOther}}, rest[which]);
  };
  counter("sluice_key_refused_total", "Requests to a key that were not let through.", kRefused);
  counter("sluice_key_trips_total", "How often a key was shut.", kTrips);
  counter("sluice_key_junk_total", "Rate-limit headers of a key nobody could read.", kJunk);
  return text.take();
}

}  // namespace sluice
