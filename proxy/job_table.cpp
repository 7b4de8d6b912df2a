#include "proxy/job_table.h"

#include <algorithm>
#include <utility>

#include "policy/units.h"
#include "store/job_record.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxRunName = 64;

Refusal refuse_job(const std::string& name, JobVerdict verdict, const JobRules& rules,
                   const JobState& state) {
  const bool failed = verdict == JobVerdict::has_failed;
  Refusal refusal{429, failed ? "job-failed" : "job-limit", "http_request_denied", "job " + name};
  const std::string silence = state.run.empty() ? "after " + format_duration(rules.restart_after) +
                                                      " of silence or under another name"
                                                : "with its next run";
  switch (verdict) {
    case JobVerdict::has_failed:
      refusal.detail += " has failed " + std::to_string(rules.fail_after) +
                        " times in a row; it may go on " + silence;
      break;
    case JobVerdict::too_many:
      refusal.detail += " has sent the " + std::to_string(rules.max_requests) +
                        " requests it may send; it may go on " + silence;
      break;
    case JobVerdict::too_much:
      refusal.detail += " has " + std::to_string(rules.max_concurrency) +
                        " requests under way, as many as it may have";
      refusal.retry_after_s = 1;
      return refusal;
    case JobVerdict::go: break;
  }
  refusal.retry_after_s = static_cast<int>((rules.restart_after + 1s - 1us) / 1s);
  refusal.retry_after_s = std::max(refusal.retry_after_s, 1);
  refusal.hopeless = true;
  return refusal;
}

}  // namespace

template <class Change>
void JobTable::Pass::change(Change apply) {
  if (shard_ == nullptr) return;
  const std::lock_guard guard(shard_->mutex);
  apply(shard_->jobs.at(name_));  // one with a pass in somebody's hands is never dropped
}

JobTable::Pass& JobTable::Pass::operator=(Pass&& other) noexcept {
  if (this != &other) {
    leave();
    shard_ = std::exchange(other.shard_, nullptr);
    name_ = std::move(other.name_);
  }
  return *this;
}

void JobTable::Pass::leave() {
  change([](Entry& job) { --job.in_flight; });
  shard_ = nullptr;
}

void JobTable::Pass::told(OutcomeKind kind, Instant now) {
  change([&](Entry& job) { job_told(job.rules, job.state, kind, now); });
}

void JobTable::Pass::add_cost(std::int64_t micros) {
  change([&](Entry& job) { job.state.cost += micros; });
}

void JobTable::Pass::add_wait(Duration held) {
  change([&](Entry& job) {
    ++job.state.held;
    job.state.waited += held;
  });
}

void JobTable::Pass::refused() {
  // It was counted as let through when it came in.
  change([](Entry& job) {
    ++job.state.refused;
    if (job.state.requests > 0) --job.state.requests;
  });
}

JobTable::JobTable(Store* store, JobsConfig settings)
    : store_(store), settings_(std::move(settings)) {}

JobTable::Shard& JobTable::shard_of(std::string_view name) {
  return shards_[std::hash<std::string_view>{}(name) % shards_.size()];
}

const JobRules& JobTable::rules_of(const std::string& name) const {
  const auto found = settings_.named.find(name);
  return found == settings_.named.end() ? settings_.every : found->second;
}

// With the shard's lock held. `name` becomes the one it is counted under.
JobTable::Entry& JobTable::find_or_make(Shard& shard, std::string& name, const ClockPair& now) {
  if (const auto found = shard.jobs.find(name); found != shard.jobs.end()) return found->second;
  if (shard.jobs.size() >= kMaxJobs / shards_.size()) {
    auto oldest = shard.jobs.end();
    for (auto job = shard.jobs.begin(); job != shard.jobs.end(); ++job) {
      if (job->second.in_flight > 0) continue;
      if (oldest == shard.jobs.end() ||
          job->second.state.last_seen < oldest->second.state.last_seen)
        oldest = job;
    }
    if (oldest == shard.jobs.end()) {
      name = kOthers;
    } else {
      shard.jobs.erase(oldest);
    }
  }
  const auto [job, made] = shard.jobs.try_emplace(name);
  if (!made) return job->second;
  job->second.rules = rules_of(name);
  if (store_ != nullptr) {
    if (auto stored = load_job(*store_, name, now); stored && *stored) {
      job->second.state = job->second.written = **stored;
    }
  }
  return job->second;
}

JobTable::Entrance JobTable::enter(const JobClaim& claim, const ClockPair& now) {
  if (claim.name.empty()) return {};
  std::string name(claim.name);
  Shard& shard = shard_of(name);
  const std::lock_guard guard(shard.mutex);
  Entry& job = find_or_make(shard, name, now);
  job.rules = rules_of(name);
  if (claim.max_requests > 0) {
    job.rules.max_requests = job.rules.max_requests == 0
                                 ? claim.max_requests
                                 : std::min(job.rules.max_requests, claim.max_requests);
  }
  const Instant started = job.state.started;
  const JobVerdict verdict =
      job_ask(job.rules, job.state, claim.run.substr(0, kMaxRunName), job.in_flight, now.mono);
  if (job.state.started != started) job.written = JobState{};
  if (verdict != JobVerdict::go) {
    return {{}, refuse_job(name, verdict, job.rules, job.state)};
  }
  ++job.in_flight;
  return {Pass(shard, std::move(name)), std::nullopt};
}

void JobTable::flush(const ClockPair& now) {
  if (store_ == nullptr) return;
  for (Shard& shard : shards_) {
    std::vector<JobRow> changed;
    std::vector<JobState> before;
    {
      const std::lock_guard guard(shard.mutex);
      for (auto& [name, job] : shard.jobs) {
        if (job.state == job.written) continue;
        before.push_back(std::exchange(job.written, job.state));
        changed.push_back({name, {}, job.state, 0});
      }
    }
    for (std::size_t i = 0; i < changed.size(); ++i) {
      take_in(shard, changed[i].name, before[i], now);
      add_job(*store_, changed[i].name, before[i], changed[i].state, now, {});
    }
  }
}

// What other processes have counted for the run since we last looked.
void JobTable::take_in(Shard& shard, const std::string& name, const JobState& before,
                       const ClockPair& now) {
  const auto stored = load_job(*store_, name, now);
  if (!stored || !*stored || before.started == Instant{} || (*stored)->run != before.run) return;
  if ((*stored)->requests <= before.requests && !(*stored)->failed) return;
  const std::lock_guard guard(shard.mutex);
  const auto job = shard.jobs.find(name);
  if (job == shard.jobs.end() || job->second.state.started != before.started) return;
  const std::uint64_t others = (*stored)->requests - std::min((*stored)->requests, before.requests);
  job->second.state.requests += others;
  job->second.written.requests += others;
  job->second.state.failed |= (*stored)->failed;
}

std::vector<JobRow> JobTable::rows() {
  std::vector<JobRow> rows;
  for (Shard& shard : shards_) {
    const std::lock_guard guard(shard.mutex);
    for (const auto& [name, job] : shard.jobs) {
      rows.push_back({name, job.rules, job.state, job.in_flight});
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const JobRow& a, const JobRow& b) { return a.name < b.name; });
  return rows;
}

}  // namespace sluice
