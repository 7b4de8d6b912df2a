// What the admin side shows and asks for, whoever knows it. Every answer is a value of its own, so
// nothing of the proxy is locked while it is turned into text. Reads are called on the admin thread
// and must answer at once: they may take a lock for as long as copying one page takes, never for a
// walk over all keys, and never wait for a disk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/host_state.h"
#include "policy/result.h"
#include "policy/time.h"
#include "proxy/histogram.h"
#include "store/store.h"

namespace sluice {

// What is needed of every key to sort, search, count and chart. Small: there may be 100,000.
struct KeyRow {
  std::string key;     // as commands name it
  std::string policy;  // its name
  Phase phase = Phase::closed;
  Cause cause = Cause::none;
  UtcTime until{};  // the end of the cooldown; UtcTime{}: none
  std::uint32_t level = 0;
  Duration delay{};  // between requests, the learned and the policy's own together
  std::uint32_t in_flight = 0, held = 0;
  Counts counts;
};

struct KeyPage {
  std::vector<KeyRow> keys;  // in order of their keys
  bool more = false;         // ask again with `after` = the last key
};

// The rest, asked for only about what somebody looks at.
struct KeyDetail {
  KeyRow row;
  std::string sentence;      // policy/sentence.h
  std::uint16_t status = 0;  // the answer that shut it; 0: none
  UtcTime opened_at{};       // UtcTime{}: never
  std::string reason;        // an operator's words
  std::string said;          // what the origin said
  std::string pace;          // what was learned about its speed, one sentence; empty: nothing
  bool observed_only = false;
};

struct AnomalyCount {
  std::string kind;
  std::uint64_t count = 0;
};

struct Refused {
  std::string reason;  // the word of DESIGN §3
  std::uint64_t count = 0;
};

struct StopState {
  bool on = false;
  std::string reason;
  UtcTime since{};
};

// Of this process since it started, unless said otherwise.
struct Totals {
  UtcTime started{};
  StopState stop;
  std::uint64_t clients = 0;  // connections now
  std::uint64_t in_flight = 0, held = 0;
  Counts outcomes;
  std::vector<Refused> refusals;
  std::vector<AnomalyCount> anomalies;  // that began
  Histogram hold, overhead;
  std::uint64_t pace_changes = 0;
  std::uint64_t would_wait = 0, would_refuse = 0;  // by policies that only observe
  std::uint64_t store_failures = 0;
  std::uint64_t alerts_sent = 0;     // messages
  std::uint64_t alerts_failed = 0;   // tries to send one
  std::uint64_t alerts_dropped = 0;  // alerts that were given up
  std::uint64_t alerts_waiting = 0;  // now
};

struct BudgetPeriod {
  std::string name;  // "daily", "monthly"
  double limit = 0, spent = 0, reserved = 0;
  double alert_at = 0, stop_at = 0;  // shares of the limit
  UtcTime resets{};
};
struct BudgetLine {
  std::string kind, name;  // "policy" | "host" | "job"
  double spent = 0;
  std::uint64_t requests = 0;
};
struct Budget {
  std::string currency;
  std::vector<BudgetPeriod> periods;  // empty: there is no budget
  std::vector<BudgetLine> lines;      // of today, the dearest first
};

struct Anomaly {
  std::string kind;  // "burst", "thrash", "error-spike", "off-hours"
  std::string key, sentence;
  std::string action;  // "alert", "throttle", "open"
  UtcTime since{};
  std::optional<UtcTime> ended;
};

struct Job {
  std::string name;
  std::uint64_t requests = 0, max_requests = 0;  // 0: no limit
  std::uint32_t in_flight = 0;
  std::uint32_t failures_in_a_row = 0;
  bool failed = false;  // refused until it restarts
  double spent = 0;
  std::uint64_t failures = 0;
  std::uint32_t max_concurrency = 0;  // 0: no limit
  std::string run{};                  // of `sluice exec`; empty: it does not name its runs
  std::uint64_t refused = 0;          // by whatever of ours
  std::uint64_t held = 0;             // that had to wait for their turn
  Duration waited{};                  // and for how long, in sum
};

struct PolicyProblem {
  std::string place;    // "policies/github.toml:3:8"
  std::string message;  // one sentence
};

struct Readiness {
  bool ready = true;
  std::string why;  // not ready: one sentence
};

class AdminSource {
 public:
  // What became of an operator's order: one sentence about what holds now, or why not. Called once,
  // on any thread, perhaps before the order returns.
  using Done = std::function<void(Result<std::string>)>;

  AdminSource() = default;
  AdminSource(const AdminSource&) = delete;
  AdminSource& operator=(const AdminSource&) = delete;
  virtual ~AdminSource() = default;

  virtual Readiness readiness() = 0;
  virtual Totals totals() = 0;
  virtual Result<KeyPage> keys(std::string_view after, std::size_t limit) = 0;
  virtual std::optional<KeyDetail> key(std::string_view key) = 0;  // none: never seen
  virtual Budget budget() = 0;
  virtual std::vector<Anomaly> anomalies() = 0;  // those going on, then the latest that ended
  virtual std::vector<Job> jobs() = 0;
  virtual std::vector<PolicyProblem> policy_problems() = 0;
  virtual Health store_health() = 0;
  // Events with a sequence above `after`, oldest first.
  virtual Result<std::vector<StoredEvent>> events(std::uint64_t after, std::size_t limit) = 0;

  // A key as an order names it, in the one spelling that the next two take; or why such an order
  // would not do what it says.
  virtual Result<std::string> order_key(const std::string& named) = 0;
  // Whether there is anything to close; yes, when nobody can say.
  virtual bool knows(const std::string& key) = 0;
  // Done when it is durable. A bare host name means every key of that host.
  virtual void open(std::string key, Duration length, std::string reason, Done done) = 0;
  virtual void close(std::string key, Done done) = 0;
  virtual void stop(std::string reason, Done done) = 0;
  virtual void resume(Done done) = 0;
  virtual void test_alert(Done done) = 0;
};

}  // namespace sluice
