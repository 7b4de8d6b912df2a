// What one job may do: how many requests in a run, how many at once, how many failures in a row. A
// pure state and two functions over it. A run is what a job restarts with: a job that names its
// runs (`sluice exec` does) starts a new one with a new name; one that does not has restarted when
// it has sent nothing for `restart_after`, however often it was refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/policy.h"
#include "policy/time.h"

namespace sluice {

struct JobRules {
  std::uint64_t max_requests = 0;  // in a run; 0: no limit
  unsigned max_concurrency = 0;    // 0: no limit
  unsigned fail_after = 20;        // failures in a row; 0: never
  Duration restart_after = 10min;  // of sending nothing
  bool operator==(const JobRules&) const = default;
};

struct JobState {
  std::string run;              // empty: it does not name them
  std::uint64_t requests = 0;   // let through in this run
  std::uint64_t successes = 0;  // in this run, as all below
  std::uint64_t failures = 0;
  std::uint64_t refused = 0;            // by whatever of ours
  std::uint32_t failures_in_a_row = 0;  // the last ones
  bool failed = false;                  // refused until it restarts
  std::uint64_t held = 0;               // that had to wait for their turn
  Duration waited{};                    // and for how long, in sum
  std::int64_t cost = 0;                // micro-units of the budget's currency
  Instant started{}, last_seen{};       // of this run; Instant{}: never
  bool operator==(const JobState&) const = default;
};

enum class JobVerdict : std::uint8_t {
  go,
  too_many,    // max_requests: until the next run
  too_much,    // max_concurrency: until one is done
  has_failed,  // fail_after: until the next run
};

// What a job has under way.
struct JobLoad {
  unsigned run = 0;  // of this run
  unsigned job = 0;  // of all runs of the job that go on at the same time, this one included
};

// Begins a new run where one is due, and asks for one request more.
JobVerdict job_ask(const JobRules& rules, JobState& state, std::string_view run, JobLoad under_way,
                   Instant now);

// When one that does not name its runs may go on, if nothing of it is under way.
Instant job_restart_at(const JobRules& rules, const JobState& state);

// Of the latest start of a job's runs: whether this one was over by then.
bool job_run_is_past(const JobState& state, Instant latest_start);

// How a request of this run went. Neutral and local outcomes say nothing about a job.
void job_told(const JobRules& rules, JobState& state, OutcomeKind kind, Instant now);

}  // namespace sluice
