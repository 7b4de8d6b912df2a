// What a decision, a look for anomalies and a look into a body cost, without any network around
// them: prints one line each and fails when one is above its bound (issues 3 and 6). The decision
// is the whole of it: policy, key, gate, and whether the store has news. Times are the medians of
// many short runs, so that a busy machine disturbs them little.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/anomaly.h"
#include "policy/classify.h"
#include "policy/policy_set.h"
#include "policy/url_sketch.h"
#include "proxy/clock.h"
#include "proxy/governor/governor.h"
#include "store/memory.h"

namespace {

using namespace sluice;

constexpr int kPolicies = 1000;
constexpr int kKeys = 100000;
constexpr double kMostDecisionNs = 1000;
constexpr double kMostAnomalyNs = 250;
constexpr double kLeastScanGb = 1.0;

double nanoseconds_since(Instant before) {
  const Duration gone = std::max(Duration(1), monotonic_now() - before);
  return static_cast<double>(gone.count()) * 1000;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

std::shared_ptr<PolicySet> thousand_policies() {
  auto made = std::make_shared<PolicySet>();
  PolicySet& set = *made;
  for (int i = 0; i < kPolicies; ++i) {
    const std::string n = std::to_string(i);
    const auto reading = read_policy("hosts = ['api" + n + ".test', '*.cdn" + n +
                                         ".test']\n[roles.download]\npaths = ['*.pdf', '/d/*']\n",
                                     "p" + n + ".toml", Policy{});
    if (!reading.problems.empty() || !set.add(reading.read).empty()) std::abort();
  }
  return made;
}

class Nobody : public Asker, public Mailbox {
 public:
  void on_admission(Admission) override {}
  void on_durable() override {}
  void post(std::function<void()> task) override { task(); }
};

struct Costs {
  double decision = 0, classify = 0, rest = 0;  // ns, medians
};

// What every forwarded request pays, by the way that exchanges take. Keys are visited in an order
// that no cache likes.
Costs request_ns() {
  MemoryStore store;
  Governor governor(store,
                    std::make_shared<const Rulebook>(PolicyLoad{thousand_policies(), {}, {}}), {});
  std::vector<std::string> hosts;
  for (int i = 0; i < kKeys; ++i) {
    const std::string domain = std::to_string(i % kPolicies);
    hosts.push_back(i < kPolicies ? "api" + domain + ".test"
                                  : "h" + std::to_string(i) + ".cdn" + domain + ".test");
  }
  Head request, response;
  request.method = "GET";
  response.status = 200;
  response.fields = {{"Content-Type", "image/png", FieldName::content_type},
                     {"Content-Length", "1024", FieldName::content_length},
                     {"Server", "bench", FieldName::other}};
  Nobody nobody;
  constexpr int kRuns = 5000, kBatch = 100;
  std::array<std::vector<double>, 3> times;
  std::uint64_t at = 1;
  int others = 0;
  const auto ask = [&](const std::string& host, const std::string& path) {
    return governor.admit(
        governor.prepare({.request = request, .host = host, .port = 80, .path = path}), nobody,
        nobody);
  };
  for (const std::string& host : hosts) static_cast<void>(ask(host, "/"));  // all keys are known
  std::vector<std::string> paths(kBatch), asked(kBatch);
  for (int run = 0; run < kRuns; ++run) {
    std::vector<Admission> batch(kBatch);
    // Never one twice: that would be an anomaly.
    for (int i = 0; i < kBatch; ++i) {
      at = at * 6364136223846793005u + 1442695040888963407u;
      asked[i] = hosts[(at >> 33) % kKeys];  // a name is at hand, it has just been read
      paths[i] = "/v1/things/" + std::to_string(run * kBatch + i);
    }
    const Instant start = monotonic_now();
    for (int i = 0; i < kBatch; ++i) batch[i] = ask(asked[i], paths[i]);
    times[0].push_back(nanoseconds_since(start) / kBatch);
    const Instant decided = monotonic_now();
    for (Admission& admission : batch) {
      if (!admission.permit) {
        ++others;
      } else {
        static_cast<void>(admission.permit.answered(response, std::nullopt, nobody, nobody));
      }
    }
    times[1].push_back(nanoseconds_since(decided) / kBatch);
    const Instant answered = monotonic_now();
    for (Admission& admission : batch) admission.permit.done();
    times[2].push_back(nanoseconds_since(answered) / kBatch);
  }
  if (others > kRuns * kBatch / 100) std::abort();  // held, because one key was met twice
  return {median(times[0]), median(times[1]), median(times[2])};
}

// What every request pays to be looked at, at worst: its URL is new, and another makes room for it.
double anomaly_ns() {
  const AnomalyRules rules;
  UrlSketch urls(16 * 1024, rules.thrash.within);  // one of sixteen, as the proxy has them
  std::vector<KeyAnomalies> keys(kPolicies);
  std::vector<UsualRate> usual(kPolicies);
  std::vector<AnomalyNews> news;
  constexpr int kRuns = 10000, kBatch = 100;
  std::vector<double> times;
  std::uint64_t at = 1;
  const Instant start = monotonic_now();
  for (int run = 0; run < kRuns; ++run) {
    const Instant before = monotonic_now();
    for (int i = 0; i < kBatch; ++i) {
      at = at * 6364136223846793005u + 1442695040888963407u;
      AnomalyAsk ask{.now = start + run * 50ms, .utc = UtcTime{480'000h} + run * 50ms};
      ask.url = at ^ at >> 29;
      ask.times = urls.count(ask.url, ask.now);
      ask.times = urls.add(ask.url, ask.now);
      const std::size_t key = (at >> 33) % kPolicies;
      keys[key].asked(rules, usual[key], ask, news);
      keys[key].answered(rules, usual[key], ask, false, news);
    }
    times.push_back(nanoseconds_since(before) / kBatch);
  }
  if (!news.empty()) std::abort();
  return median(std::move(times));
}

// Plain English-like text that holds no marker, as most bodies do.
std::string plain_text(std::size_t size) {
  constexpr std::string_view kWords[] = {
      "the ",    "rate ", "of ",      "requests ", "to ",    "this ",  "server ", "was ",  "and ",
      "access ", "is ",   "limited ", "block ",    "human ", "check ", "please ", "wait ", "a\n"};
  std::string out;
  std::uint64_t at = 7;
  while (out.size() < size) {
    at = at * 6364136223846793005u + 1442695040888963407u;
    out += kWords[(at >> 40) % std::size(kWords)];
  }
  out.resize(size);
  return out;
}

double scan_gb_per_s() {
  constexpr std::size_t kBody = 64 * 1024, kPiece = 16 * 1024;
  const auto markers = builtin_body_markers();
  const std::string body = plain_text(kBody);
  constexpr int kRuns = 1000, kBatch = 4;
  std::vector<double> rates;
  for (int run = 0; run < kRuns; ++run) {
    const Instant before = monotonic_now();
    for (int i = 0; i < kBatch; ++i) {
      MarkerScan scan(markers, 200, kBody);
      for (std::size_t at = 0; at < kBody; at += kPiece) {
        if (scan.feed(std::string_view(body).substr(at, kPiece))) std::abort();
      }
    }
    rates.push_back(static_cast<double>(kBody) * kBatch / nanoseconds_since(before));
  }
  return median(std::move(rates));  // bytes per nanosecond are gigabytes per second
}

}  // namespace

int main() {
  const Costs costs = request_ns();
  const double anomaly = anomaly_ns();
  const double scan = scan_gb_per_s();
  std::printf("decision: %.0f ns median with %d policies and %d keys (bound %.0f)\n",
              costs.decision, kPolicies, kKeys, kMostDecisionNs);
  std::printf("answer:   %.0f ns to classify a head, %.0f ns to learn from it and free the place\n",
              costs.classify, costs.rest);
  std::printf("anomaly:  %.0f ns median for a request and its answer (bound %.0f)\n", anomaly,
              kMostAnomalyNs);
  std::printf("scan:     %.2f GB/s of plain text on one core (bound %.1f)\n", scan, kLeastScanGb);
  return costs.decision < kMostDecisionNs && anomaly < kMostAnomalyNs && scan >= kLeastScanGb ? 0
                                                                                              : 1;
}
