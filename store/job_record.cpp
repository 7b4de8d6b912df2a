#include "store/job_record.h"

#include <algorithm>
#include <utility>

#include "policy/units.h"
#include "store/wire.h"

namespace sluice {
namespace {

constexpr char kJobLetter = 'J';
constexpr std::uint8_t kJobVersion = 2;  // 2 added `held`
constexpr std::size_t kMaxRun = 64;

// Neither holds a slash.
std::string job_key(std::string_view name, std::string_view run) {
  std::string key = std::string(kJobPrefix).append(name);
  if (!run.empty()) key.append("/").append(run.substr(0, kMaxRun));
  return key;
}

// Nothing is decided by a job's times but a restart after silence: the wall clock will do.
std::int64_t to_utc(Instant moment, const ClockPair& now) {
  return (now.utc + (moment - now.mono)).time_since_epoch().count();
}

Instant from_utc(std::int64_t micros, const ClockPair& now) {
  const Duration age = now.utc - UtcTime{Duration{micros}};
  return now.mono - std::clamp<Duration>(age, Duration(0), kLongestDuration);
}

std::string encode(const JobState& state, const ClockPair& now) {
  WireWriter fields;
  fields.number(static_cast<std::uint16_t>(std::min(state.run.size(), kMaxRun)));
  fields.text(std::string_view(state.run).substr(0, kMaxRun));
  for (const std::uint64_t n : {state.requests, state.successes, state.failures, state.refused}) {
    fields.number(n);
  }
  fields.number(state.failures_in_a_row);
  fields.number(static_cast<std::uint8_t>(state.failed));
  fields.number(state.waited.count());
  fields.number(state.cost);
  fields.number(to_utc(state.started, now));
  fields.number(to_utc(state.last_seen, now));
  fields.number(state.held);
  return seal({kJobLetter, kJobVersion, 1}, fields.bytes());
}

Result<JobState> decode(std::string_view bytes, const ClockPair& now) {
  const auto fields = unseal(bytes, kJobLetter, kJobVersion);
  if (!fields) return Error{fields.error()};
  WireReader reader(*fields);
  JobState state;
  state.run = reader.text(reader.number<std::uint16_t>());
  for (std::uint64_t* n : {&state.requests, &state.successes, &state.failures, &state.refused}) {
    *n = reader.number<std::uint64_t>();
  }
  state.failures_in_a_row = reader.number<std::uint32_t>();
  state.failed = reader.number<std::uint8_t>() != 0;
  state.waited = Duration{reader.number<std::int64_t>()};
  state.cost = reader.number<std::int64_t>();
  state.started = from_utc(reader.number<std::int64_t>(), now);
  state.last_seen = from_utc(reader.number<std::int64_t>(), now);
  if (!reader.done()) state.held = reader.number<std::uint64_t>();
  if (!reader.ok()) return Error{"the record of the job ends too early"};
  return state;
}

JobState joined(JobState stored, const JobState& before, const JobState& after) {
  stored.requests += after.requests - before.requests;
  stored.successes += after.successes - before.successes;
  stored.failures += after.failures - before.failures;
  stored.refused += after.refused - before.refused;
  stored.held += after.held - before.held;
  stored.waited += after.waited - before.waited;
  stored.cost += after.cost - before.cost;
  stored.failures_in_a_row = after.failures_in_a_row;
  stored.failed = stored.failed || after.failed;
  stored.last_seen = std::max(stored.last_seen, after.last_seen);
  return stored;
}

// The same run: of the same name, and where there are no names, overlapping in time.
bool same_run(const JobState& stored, const JobState& state) {
  return stored.run == state.run && (!state.run.empty() || state.started <= stored.last_seen);
}

}  // namespace

void add_job(Store& store, std::string_view name, const JobState& before, const JobState& after,
             const ClockPair& now, Completion done) {
  store.update(
      job_key(name, after.run),
      [before, after, now](std::optional<std::string_view> current) {
        const auto stored = current ? decode(*current, now) : Result<JobState>(Error{});
        if (!stored || !same_run(*stored, after)) {
          return Change{Change::Kind::put, encode(after, now), 1};
        }
        return Change{Change::Kind::put, encode(joined(*stored, before, after), now), 1};
      },
      std::move(done));
}

Result<std::optional<JobState>> load_job(Store& store, std::string_view name, std::string_view run,
                                         const ClockPair& now) {
  const auto read = store.get(job_key(name, run));
  if (!read) return Error{read.error()};
  if (!read->value) return std::optional<JobState>();
  auto state = decode(*read->value, now);
  if (!state) return Error{state.error()};
  return std::optional<JobState>(std::move(*state));
}

Result<JobPage> list_jobs(Store& store, std::string_view after, std::size_t limit,
                          const ClockPair& now) {
  const auto page = store.scan(kJobPrefix, after.empty() ? "" : job_key(after, {}), limit);
  if (!page) return Error{page.error()};
  JobPage out;
  out.more = page->more;
  for (const Entry& entry : page->entries) {
    auto state = decode(entry.value, now);
    const std::string place = entry.key.substr(kJobPrefix.size());
    out.jobs.push_back({place.substr(0, place.find('/')), place,
                        state ? std::optional<JobState>(std::move(*state)) : std::nullopt});
  }
  return out;
}

bool job_is_over(std::string_view bytes, const ClockPair& now, Duration age) {
  const auto state = decode(bytes, now);
  return !state || now.mono - state->last_seen >= age;
}

}  // namespace sluice
