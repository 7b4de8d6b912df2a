#include "proxy/job_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "policy/units.h"
#include "store/job_record.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxRunName = 64;

std::string place_of(std::string_view name, std::string_view run) {
  std::string place(name);
  if (!run.empty()) place.append("/").append(run);
  return place;
}

// How long it stays refused. What is under way keeps a run from ending.
Duration time_to_restart(const JobRules& rules, const JobState& state, unsigned in_flight,
                         Instant now) {
  return in_flight > 0 ? rules.restart_after
                       : std::max(job_restart_at(rules, state) - now, Duration(0));
}

Refusal refuse_job(const std::string& name, JobVerdict verdict, const JobRules& rules,
                   const JobState& state, Duration left) {
  const bool failed = verdict == JobVerdict::has_failed;
  Refusal refusal{429, failed ? "job-failed" : "job-limit", "http_request_denied", "job " + name};
  const std::string again = state.run.empty()
                                ? "in " + format_duration(left) + " or under another name"
                                : "with its next run";
  switch (verdict) {
    case JobVerdict::has_failed:
      refusal.detail += " has failed " + std::to_string(rules.fail_after) +
                        " times in a row; it may go on " + again;
      break;
    case JobVerdict::too_many:
      refusal.detail += " has sent the " + std::to_string(rules.max_requests) +
                        " requests it may send; it may go on " + again;
      break;
    case JobVerdict::too_much:
      refusal.detail += " has " + std::to_string(rules.max_concurrency) +
                        " requests under way, as many as it may have";
      refusal.retry_after_s = 1;
      return refusal;
    case JobVerdict::go: break;
  }
  refusal.retry_after_s = static_cast<int>((left + 1s - 1us) / 1s);
  refusal.retry_after_s = std::max(refusal.retry_after_s, 1);
  refusal.hopeless = true;
  return refusal;
}

}  // namespace

template <class Change>
void JobTable::Pass::change(Change apply) {
  if (shard_ == nullptr) return;
  const std::lock_guard guard(shard_->mutex);
  apply(shard_->jobs.at(place_));  // one with a pass in somebody's hands is never dropped
}

JobTable::Pass& JobTable::Pass::operator=(Pass&& other) noexcept {
  if (this != &other) {
    leave();
    shard_ = std::exchange(other.shard_, nullptr);
    place_ = std::move(other.place_);
  }
  return *this;
}

void JobTable::Pass::leave() {
  change([this](Entry& job) {
    --job.in_flight;
    const auto all = shard_->under_way.find(job.name);
    if (--all->second == 0) shard_->under_way.erase(all);
  });
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

// With the shard's lock held. `place` becomes the one at which it is counted.
JobTable::Entry& JobTable::find_or_make(Shard& shard, const JobClaim& claim, std::string& place,
                                        const ClockPair& now) {
  if (const auto found = shard.jobs.find(place); found != shard.jobs.end()) return found->second;
  if (shard.jobs.size() >= kMaxJobs / shards_.size()) {
    auto oldest = shard.jobs.end();
    for (auto job = shard.jobs.begin(); job != shard.jobs.end(); ++job) {
      if (job->second.in_flight > 0) continue;
      if (oldest == shard.jobs.end() ||
          job->second.state.last_seen < oldest->second.state.last_seen)
        oldest = job;
    }
    if (oldest == shard.jobs.end()) {
      place = kOthers;
    } else {
      shard.jobs.erase(oldest);
    }
  }
  const auto [job, made] = shard.jobs.try_emplace(place);
  if (!made) return job->second;
  const bool alone = place != kOthers;
  job->second.name = alone ? claim.name : kOthers;
  if (store_ == nullptr) return job->second;
  const auto stored =
      load_job(*store_, job->second.name, alone ? claim.run : std::string_view(), now);
  if (stored && *stored) job->second.state = job->second.written = **stored;
  return job->second;
}

JobTable::Entrance JobTable::enter(const JobClaim& claim, const ClockPair& now) {
  if (claim.name.empty()) return {};
  const JobClaim bounded{claim.name, claim.run.substr(0, kMaxRunName), claim.max_requests};
  Shard& shard = shard_of(claim.name);
  std::string place = place_of(bounded.name, bounded.run);
  const std::lock_guard guard(shard.mutex);
  Entry& job = find_or_make(shard, bounded, place, now);
  job.rules = rules_of(job.name);
  if (claim.max_requests > 0) {
    job.rules.max_requests = job.rules.max_requests == 0
                                 ? claim.max_requests
                                 : std::min(job.rules.max_requests, claim.max_requests);
  }
  const auto all = shard.under_way.find(job.name);
  const unsigned under_way = all == shard.under_way.end() ? 0 : all->second;
  const Instant started = job.state.started;
  const JobVerdict verdict = job_ask(job.rules, job.state, place == kOthers ? "" : bounded.run,
                                     {job.in_flight, under_way}, now.mono);
  if (job.state.started != started) job.written = JobState{};
  if (verdict != JobVerdict::go) {
    return {{},
            refuse_job(job.name, verdict, job.rules, job.state,
                       time_to_restart(job.rules, job.state, job.in_flight, now.mono))};
  }
  ++job.in_flight;
  ++shard.under_way[job.name];
  return {Pass(shard, std::move(place)), std::nullopt};
}

JobState JobTable::state_of(const std::string& name, const std::string& run, const ClockPair& now) {
  Shard& shard = shard_of(name);
  {
    const std::lock_guard guard(shard.mutex);
    const auto job = shard.jobs.find(place_of(name, run));
    if (job != shard.jobs.end()) return job->second.state;
  }
  if (store_ == nullptr) return {};
  const auto stored = load_job(*store_, name, run, now);
  return stored && *stored ? **stored : JobState{};
}

void JobTable::flush(const ClockPair& now) {
  if (store_ == nullptr) return;
  struct Changed {
    std::string place, name;
    JobState before, after;
  };
  for (Shard& shard : shards_) {
    std::vector<Changed> changed;
    {
      const std::lock_guard guard(shard.mutex);
      for (auto& [place, job] : shard.jobs) {
        if (job.state == job.written) continue;
        changed.push_back({place, job.name, std::exchange(job.written, job.state), job.state});
      }
    }
    for (const Changed& job : changed) {
      take_in(shard, job.place, job.name, job.before, now);
      add_job(*store_, job.name, job.before, job.after, now, {});
    }
  }
}

// What other processes have counted for the run since we last looked.
void JobTable::take_in(Shard& shard, const std::string& place, const std::string& name,
                       const JobState& before, const ClockPair& now) {
  const auto stored = load_job(*store_, name, before.run, now);
  if (!stored || !*stored || before.started == Instant{} || (*stored)->run != before.run) return;
  if ((*stored)->requests <= before.requests && !(*stored)->failed) return;
  const std::lock_guard guard(shard.mutex);
  const auto job = shard.jobs.find(place);
  if (job == shard.jobs.end() || job->second.state.started != before.started) return;
  const std::uint64_t others = (*stored)->requests - std::min((*stored)->requests, before.requests);
  job->second.state.requests += others;
  job->second.written.requests += others;
  job->second.state.failed |= (*stored)->failed;
}

std::vector<JobRow> JobTable::rows() {
  std::vector<JobRow> rows;
  std::unordered_map<std::string, Instant> latest;
  for (Shard& shard : shards_) {
    const std::lock_guard guard(shard.mutex);
    for (const auto& [place, job] : shard.jobs) {
      rows.push_back({job.name, job.rules, job.state, job.in_flight});
      Instant& started = latest[job.name];
      started = std::max(started, job.state.started);
    }
  }
  std::erase_if(rows, [&](const JobRow& row) {
    return row.in_flight == 0 && job_run_is_past(row.state, latest[row.name]);
  });
  std::sort(rows.begin(), rows.end(), [](const JobRow& a, const JobRow& b) {
    return std::tie(a.name, a.state.started) < std::tie(b.name, b.state.started);
  });
  return rows;
}

}  // namespace sluice
