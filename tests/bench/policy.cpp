// What a decision and a look into a body cost, without any network around them: prints one line
// each and fails when one is above its bound (issue 3). Times are the medians of many short runs,
// so that a busy machine disturbs them little.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "policy/breaker.h"
#include "policy/classify.h"
#include "policy/policy_set.h"
#include "proxy/clock.h"

namespace {

using namespace sluice;

constexpr int kPolicies = 1000;
constexpr int kKeys = 100000;
constexpr double kMostDecisionNs = 1000;
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

PolicySet thousand_policies() {
  PolicySet set;
  for (int i = 0; i < kPolicies; ++i) {
    const std::string n = std::to_string(i);
    const auto reading = read_policy("hosts = ['api" + n + ".test', '*.cdn" + n +
                                         ".test']\n[roles.download]\npaths = ['*.pdf', '/d/*']\n",
                                     "p" + n + ".toml", Policy{});
    if (!reading.problems.empty() || !set.add(reading.read).empty()) std::abort();
  }
  return set;
}

// Match, decide, observe a success: what every forwarded request pays. Keys are visited in an order
// that no cache likes.
double decision_ns() {
  const PolicySet set = thousand_policies();
  std::vector<std::string> hosts;
  for (int i = 0; i < kPolicies; ++i) {
    const std::string n = std::to_string(i);
    hosts.push_back(i % 2 == 0 ? "api" + n + ".test" : "x.y.cdn" + n + ".test");
  }
  std::vector<HostState> states(kKeys);
  Outcome success;
  success.kind = OutcomeKind::success;
  success.status = 200;
  constexpr int kRuns = 10000, kBatch = 100;
  std::vector<double> times;
  std::uint64_t at = 1, forwarded = 0;
  const Instant start = monotonic_now();
  for (int run = 0; run < kRuns; ++run) {
    const Instant before = monotonic_now();
    for (int i = 0; i < kBatch; ++i) {
      at = at * 6364136223846793005u + 1442695040888963407u;
      HostState& state = states[(at >> 33) % kKeys];
      const std::string& host = hosts[(at >> 40) % kPolicies];
      const PolicyMatch match = set.match(host, 443, "/v1/things/17");
      Step step = decide(match.rules(), std::move(state), start, {start});
      forwarded += step.decision.act == Decision::Act::forward ? 1 : 0;
      success.ticket = step.decision.ticket;
      state = observe(match.rules(), std::move(step.next), start, success, 0.5);
    }
    times.push_back(nanoseconds_since(before) / kBatch);
  }
  if (forwarded != std::uint64_t{kRuns} * kBatch) std::abort();
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
  const double decision = decision_ns();
  const double scan = scan_gb_per_s();
  std::printf("decision: %.0f ns median with %d policies and %d keys (bound %.0f)\n", decision,
              kPolicies, kKeys, kMostDecisionNs);
  std::printf("scan:     %.2f GB/s of plain text on one core (bound %.1f)\n", scan, kLeastScanGb);
  return decision < kMostDecisionNs && scan >= kLeastScanGb ? 0 : 1;
}
