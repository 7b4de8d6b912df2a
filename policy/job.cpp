#include "policy/job.h"

namespace sluice {
namespace {

bool restarts(const JobRules& rules, const JobState& state, std::string_view run, Instant now) {
  if (state.last_seen == Instant{}) return true;
  if (run != state.run) return true;
  return run.empty() && now - state.last_seen >= rules.restart_after;
}

JobVerdict verdict(const JobRules& rules, const JobState& state, unsigned under_way) {
  if (state.failed) return JobVerdict::has_failed;
  if (rules.max_requests > 0 && state.requests >= rules.max_requests) return JobVerdict::too_many;
  if (rules.max_concurrency > 0 && under_way >= rules.max_concurrency) return JobVerdict::too_much;
  return JobVerdict::go;
}

}  // namespace

JobVerdict job_ask(const JobRules& rules, JobState& state, std::string_view run, JobLoad under_way,
                   Instant now) {
  // What is still in flight belongs to the run that is there.
  if (restarts(rules, state, run, now) && (under_way.run == 0 || run != state.run)) {
    state = JobState{};
    state.run = run;
    state.started = state.last_seen = now;
  }
  const JobVerdict answer = verdict(rules, state, under_way.job);
  // To ask in vain is silence, or who asks every five minutes would be refused for good. One that
  // names its runs does not restart by silence: there it says no more than that it is there.
  if (answer == JobVerdict::go || !run.empty()) state.last_seen = now;
  if (answer == JobVerdict::go) {
    ++state.requests;
  } else {
    ++state.refused;
  }
  return answer;
}

Instant job_restart_at(const JobRules& rules, const JobState& state) {
  return state.last_seen + rules.restart_after;
}

bool job_run_is_past(const JobState& state, Instant latest_start) {
  return state.last_seen < latest_start;
}

void job_told(const JobRules& rules, JobState& state, OutcomeKind kind, Instant now) {
  state.last_seen = now;
  switch (kind) {
    case OutcomeKind::success:
      ++state.successes;
      state.failures_in_a_row = 0;
      return;
    case OutcomeKind::rate_limited:
    case OutcomeKind::anti_bot:
    case OutcomeKind::server_error:
    case OutcomeKind::network:
      ++state.failures;
      ++state.failures_in_a_row;
      // Only the next run ends it: a late success of one that was already sent does not.
      if (rules.fail_after > 0 && state.failures_in_a_row >= rules.fail_after) state.failed = true;
      return;
    case OutcomeKind::neutral:
    case OutcomeKind::local: return;
  }
}

}  // namespace sluice
