// What is remembered of a job between two starts of the daemon. Processes add what they have seen
// to the record, so that one store has one count; a run that is newer than the record's replaces
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/job.h"
#include "store/clock_pair.h"
#include "store/store.h"

namespace sluice {

inline constexpr std::string_view kJobPrefix = "job/";

// Each run that has a name has a record of its own, so that two at once do not meet. Those without
// share the one of the job.
// Adds what has happened since `before`, a state of the same run, to the record. Answered with 1.
void add_job(Store& store, std::string_view name, const JobState& before, const JobState& after,
             const ClockPair& now, Completion done);

// None: never heard of.
Result<std::optional<JobState>> load_job(Store& store, std::string_view name, std::string_view run,
                                         const ClockPair& now);

struct ListedJob {
  std::string name;
  std::string place;              // among all runs of all jobs
  std::optional<JobState> state;  // none: the record cannot be read
};
struct JobPage {
  std::vector<ListedJob> jobs;  // in order of their places
  bool more = false;            // ask again with `after` = the last place
};
Result<JobPage> list_jobs(Store& store, std::string_view after, std::size_t limit,
                          const ClockPair& now);

bool job_is_over(std::string_view bytes, const ClockPair& now, Duration age);

}  // namespace sluice
