#include "proxy/admin/metrics.h"

#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "unit/proxy/fake_source.h"

using namespace sluice;

namespace {

// Reads the text format 0.0.4 strictly: HELP and TYPE once and first, samples of one name together,
// no sample twice. Gives every sample by its name and labels.
std::map<std::string, double> samples(const std::string& page) {
  static const std::regex kSample(
      R"re(([a-z_]+)(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? (\S+))re");
  std::map<std::string, double> out;
  std::set<std::string> families;
  std::string family, type, line;
  std::istringstream lines(page);
  REQUIRE(page.back() == '\n');
  while (std::getline(lines, line)) {
    CAPTURE(line);
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      CHECK(families.insert(family).second);
      CHECK(family.starts_with("sluice_"));
      continue;
    }
    if (line.starts_with("# TYPE ")) {
      CHECK(line.substr(7, family.size()) == family);
      type = line.substr(8 + family.size());
      CHECK((type == "gauge" || type == "counter" || type == "histogram"));
      CHECK((type == "counter") == family.ends_with("_total"));
      continue;
    }
    std::smatch parts;
    REQUIRE(std::regex_match(line, parts, kSample));
    const std::string name = parts[1];
    if (type == "histogram")
      CHECK((name == family + "_bucket" || name == family + "_sum" || name == family + "_count"));
    else
      CHECK(name == family);
    CHECK(out.emplace(name + parts[2].str(), std::stod(parts[3])).second);
  }
  return out;
}

struct Scrape {
  std::vector<KeyRow> rows;
  Totals totals;
  Budget budget;
  std::vector<Anomaly> anomalies;
  std::vector<Job> jobs;
  Metrics metrics;

  std::map<std::string, double> read() {
    return samples(
        metrics.page({rows, totals, budget, anomalies, jobs, 2, true, true, UtcTime{1000s}}));
  }
  KeyRow& add(std::string key, std::uint64_t requests) {
    KeyRow row;
    row.key = std::move(key);
    row.policy = "default";
    row.counts.success = requests;
    return rows.emplace_back(std::move(row));
  }
};

}  // namespace

TEST_CASE("metrics: every number has its place") {
  Scrape page;
  KeyRow& key = page.add("api.test", 9);
  key.phase = Phase::open;
  key.until = UtcTime{1041s};
  key.delay = 1500ms;
  key.level = 2;
  key.held = 4;
  key.in_flight = 3;
  key.counts.refused = 6;
  key.counts.trips = 1;
  page.totals.stop.on = true;
  page.totals.anomalies = {{"burst", 3}, {"thrash", 0}};
  page.totals.refusals = {{"breaker-open", 5}, {"budget", 1}};
  page.totals.outcomes.rate_limited = 8;
  page.totals.hold = {{0.1, 1}, {2, 3, 1}, 4.5};
  page.totals.store_failures = 2;
  page.totals.pace_changes = 12;
  page.totals.would_wait = 13;
  page.totals.would_refuse = 14;
  page.totals.alerts_failed = 1;
  page.budget = {"USD", {{"daily", 10, 2.5, 0.5, 0.5, 0.8, UtcTime{}}}, {}};
  page.anomalies = {{"burst", "api.test", "", "alert", UtcTime{}, std::nullopt},
                    {"burst", "b", "", "alert", UtcTime{}, UtcTime{}}};
  page.jobs = {{"nightly", 4, 0, 0, 0, true, 0}, {"nightly", 3, 0, 0, 0, false, 0}};
  auto read = page.read();
  const std::pair<const char*, double> expected[] = {
      {R"(sluice_key_state{key="api.test",policy="default",state="open"})", 1},
      {R"(sluice_key_state{key="api.test",policy="default",state="closed"})", 0},
      {R"(sluice_key_cooldown_seconds{key="api.test"})", 41},
      {R"(sluice_key_delay_seconds{key="api.test"})", 1.5},
      {R"(sluice_key_backoff_level{key="api.test"})", 2},
      {R"(sluice_key_held{key="api.test"})", 4},
      {R"(sluice_key_in_flight{key="api.test"})", 3},
      {R"(sluice_key_outcomes_total{key="api.test",outcome="success"})", 9},
      {R"(sluice_key_outcomes_total{key="other",outcome="success"})", 0},
      {R"(sluice_key_refused_total{key="api.test"})", 6},
      {R"(sluice_key_trips_total{key="api.test"})", 1},
      {R"(sluice_keys{state="open"})", 1},
      {R"(sluice_refusals_total{reason="breaker-open"})", 5},
      {R"(sluice_outcomes_total{outcome="rate_limited"})", 8},
      {R"(sluice_hold_seconds_bucket{le="0.1"})", 2},
      {R"(sluice_hold_seconds_bucket{le="1"})", 5},
      {R"(sluice_hold_seconds_bucket{le="+Inf"})", 6},
      {"sluice_hold_seconds_count", 6},
      {"sluice_hold_seconds_sum", 4.5},
      {"sluice_overhead_seconds_count", 0},
      {R"(sluice_budget_spent{period="daily",currency="USD"})", 2.5},
      {R"(sluice_budget_reserved{period="daily",currency="USD"})", 0.5},
      {"sluice_emergency_stop", 1},
      {"sluice_store_failures_total", 2},
      {"sluice_pace_changes_total", 12},
      {R"(sluice_observed_total{instead="wait"})", 13},
      {R"(sluice_observed_total{instead="refuse"})", 14},
      {"sluice_alert_failures_total", 1},
      {"sluice_policy_problems", 2},
      {"sluice_anomalies_active", 1},
      {R"(sluice_anomalies_total{kind="burst"})", 3},
      {R"(sluice_anomalies_total{kind="thrash"})", 0},
      {R"(sluice_job_requests_total{job="nightly"})", 7},
      {R"(sluice_job_failed{job="nightly"})", 1},
  };
  for (const auto& row : expected) {
    const std::string& name = row.first;  // clang cannot capture a structured binding
    const auto& value = row.second;
    CAPTURE(name);
    REQUIRE(read.contains(name));
    CHECK(read[name] == doctest::Approx(value));
  }
}

TEST_CASE("metrics: hostile names stay inside their quotes") {
  Scrape page;
  page.add("a\"} 1\nevil 1 # \\", 1);
  page.add("caf\xc3\xa9\x01", 1);
  page.jobs = {{"job\n\"", 1, 0, 0, 0, false, 0}};
  const auto read = page.read();
  CHECK(read.contains(R"(sluice_key_held{key="a\"} 1?evil 1 # \\"})"));
  CHECK(read.contains(R"(sluice_key_held{key="caf???"})"));
}

TEST_CASE("metrics: 100,000 keys are a bounded page, and the open ones are on it") {
  Scrape page;
  for (int i = 0; i < 100'000; ++i) page.add("host-" + std::to_string(i), 10);
  page.rows[500].counts.success = 1'000'000;
  page.rows[99'999].phase = Phase::open;
  const auto read = page.read();
  CHECK(read.size() < 2000);
  CHECK(read.contains(R"(sluice_key_outcomes_total{key="host-500",outcome="success"})"));
  CHECK(read.contains(R"(sluice_key_cooldown_seconds{key="host-99999"})"));
  double sum = 0;
  for (const auto& [name, value] : read)
    if (name.starts_with("sluice_key_outcomes_total") && name.ends_with("\"success\"}"))
      sum += value;
  CHECK(sum == doctest::Approx(99'999.0 * 10 + 1'000'000));
}

TEST_CASE("metrics: no counter goes back or jumps when a key comes into its own") {
  Scrape page;
  for (std::size_t i = 0; i <= Metrics::kBusiest; ++i)
    page.add("host-" + std::to_string(100 + i), 1000 - i);
  KeyRow& last = page.rows.back();  // the one too many
  const std::string other = R"(sluice_key_outcomes_total{key="other",outcome="success"})";
  const std::string own = "sluice_key_outcomes_total{key=\"" + last.key + "\",outcome=\"success\"}";
  const double before = page.read()[other];
  CHECK(before == 950);
  last.counts.success += 5;
  CHECK(page.read()[other] == 955);
  last.counts.success += 5000;  // now the busiest: host-149 goes to the others
  auto read = page.read();
  CHECK(read.contains(own));
  CHECK(read[other] == 955);
  page.rows[49].counts.success += 3;
  CHECK(page.read()[other] == 958);
  page.rows.erase(page.rows.begin() + 49);  // forgotten
  CHECK(page.read()[other] == 958);
}

TEST_CASE("metrics: a key that is new and busy was never among the others") {
  Scrape page;
  page.add("first", 7);
  const std::string other = R"(sluice_key_outcomes_total{key="other",outcome="success"})";
  CHECK(page.read()[other] == 0);
  page.add("second", 3);
  CHECK(page.read()[other] == 0);
  CHECK(page.read()[R"(sluice_key_outcomes_total{key="second",outcome="success"})"] == 3);
}

TEST_CASE("metrics: a host that is called other is counted there") {
  Scrape page;
  page.add("other", 5);
  CHECK(page.read()[R"(sluice_key_outcomes_total{key="other",outcome="success"})"] == 5);
}
