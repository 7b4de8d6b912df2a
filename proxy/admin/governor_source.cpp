#include "proxy/admin/governor_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "policy/breaker.h"
#include "policy/sentence.h"
#include "policy/units.h"
#include "proxy/clock.h"
#include "proxy/stop_file.h"

namespace sluice {
namespace {

constexpr int kAttempts = 16;  // against other writers of the same key

UtcTime in_utc(Instant at, const ClockPair& now) {
  return at == Instant{} ? UtcTime{} : now.utc + (at - now.mono);
}

void add(Counts& sum, const Counts& more) {
  sum.success += more.success;
  sum.neutral += more.neutral;
  sum.rate_limited += more.rate_limited;
  sum.anti_bot += more.anti_bot;
  sum.server_error += more.server_error;
  sum.network += more.network;
  sum.local += more.local;
  sum.refused += more.refused;
  sum.trips += more.trips;
  sum.junk += more.junk;
}

// The gate knows better, where there is one.
Gate::View view_of(const std::shared_ptr<Gate>& gate, const HostState& stored,
                   const ClockPair& now) {
  if (gate) return gate->view(now.mono);
  Gate::View view;
  view.state = stored;
  return view;
}

const HostState& newer(const HostState& in_use, const HostState& stored) {
  return stored.version > in_use.version ? stored : in_use;
}

// Since when the file has been there; UtcTime{}: it cannot be told.
UtcTime made(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return {};
  return UtcTime{std::chrono::seconds(about.st_mtim.tv_sec)};
}

}  // namespace

GovernorSource::GovernorSource(Governor& governor, std::string state_directory, ProcessFacts facts)
    : governor_(governor),
      store_(governor.store()),
      state_directory_(std::move(state_directory)),
      facts_(std::move(facts)) {}

GovernorSource::~GovernorSource() {
  std::unique_lock lock(writes_mutex_);
  no_writes_.wait(lock, [this] { return writes_ == 0; });
}

Totals GovernorSource::totals() {
  Totals totals;
  totals.started = facts_.started;
  totals.clients = facts_.clients();
  totals.stop = stop_state();
  totals.outcomes = counted_.outcomes;
  totals.in_flight = counted_.in_flight;
  totals.held = counted_.held;
  return totals;
}

// The gate of a key in use is ahead of the store by a few seconds of counting, unless somebody has
// written to the store since the gate last looked.
KeyRow GovernorSource::row_of(std::string key, const HostState& stored, const ClockPair& now) {
  KeyRow row;
  const auto gate = governor_.gates().find(key);
  const Gate::View view = view_of(gate, stored, now);
  const HostState& state = newer(view.state, stored);
  row.key = std::move(key);
  row.policy = view.policy;
  row.phase = phase_at(state, now.mono);
  row.cause = state.cause;
  row.until = row.phase == Phase::open ? in_utc(state.until, now) : UtcTime{};
  row.level = std::max(state.level, state.antibot_level);
  row.delay = usual_delay(state.pace);
  row.in_flight = static_cast<std::uint32_t>(view.in_flight);
  row.held = static_cast<std::uint32_t>(view.held);
  row.counts = state.counts;
  return row;
}

Result<KeyPage> GovernorSource::keys(std::string_view after, std::size_t limit) {
  const ClockPair now = clock_now();
  auto listed = list_hosts(store_, after, limit, now, governor_.rules()->longest_cooldown());
  if (!listed) return Error{listed.error()};
  KeyPage page;
  page.more = listed->more;
  for (ListedHost& host : listed->hosts)
    page.keys.push_back(row_of(std::move(host.key), host.state.value_or(HostState{}), now));
  sum_up(page.keys, after.empty(), !page.more);
  return page;
}

void GovernorSource::sum_up(const std::vector<KeyRow>& rows, bool first, bool last) {
  if (first) counting_ = {};
  for (const KeyRow& row : rows) {
    add(counting_.outcomes, row.counts);
    counting_.in_flight += row.in_flight;
    counting_.held += row.held;
  }
  if (last) counted_ = counting_;
}

std::optional<KeyDetail> GovernorSource::key(std::string_view key) {
  const ClockPair now = clock_now();
  const auto gate = governor_.gates().find(key);
  const auto loaded = load_host(store_, key, now, governor_.rules()->longest_cooldown());
  if (!gate && (!loaded || loaded->state.version == 0)) return std::nullopt;
  const HostState stored = loaded ? loaded->state : HostState{};
  const Gate::View view = view_of(gate, stored, now);
  const HostState& state = newer(view.state, stored);
  KeyDetail detail;
  detail.row = row_of(std::string(key), stored, now);
  detail.sentence = sentence(key, state, now.mono, now.utc);
  detail.status = state.status;
  detail.opened_at = in_utc(state.opened_at, now);
  detail.reason = state.reason;
  detail.said = state.said;
  detail.pace = view.pace;
  detail.observed_only = view.observed;
  return detail;
}

std::vector<PolicyProblem> GovernorSource::policy_problems() {
  std::vector<PolicyProblem> out;
  for (const Diagnostic& problem : governor_.rules()->load().problems)
    out.push_back(
        {problem.file + ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column),
         problem.message});
  return out;
}

Result<std::vector<StoredEvent>> GovernorSource::events(std::uint64_t after, std::size_t limit) {
  return store_.events(after, limit);
}

void GovernorSource::tell(std::string key, std::string text) {
  store_.append({utc_now(), EventKind::operator_act, std::move(key), std::move(text)},
                {{}, [](const Result<std::uint64_t>&) {}});
}

// DESIGN §1: a bare host name means every key of that host. Those have their port or credential
// behind it.
Result<std::vector<std::string>> GovernorSource::meant_by(const std::string& key) {
  std::vector<std::string> out;
  if (this->key(key)) out.push_back(key);
  if (key.find_first_of(":#/") != std::string::npos) return out;
  const ClockPair now = clock_now();
  std::string after = key;
  while (true) {
    const auto page = list_hosts(store_, after, kMaxPageEntries, now, {});
    if (!page) return Error{page.error()};
    for (const ListedHost& host : page->hosts) {
      if (!host.key.starts_with(key)) return out;
      const char next = host.key[key.size()];
      if (next == ':' || next == '#') out.push_back(host.key);
    }
    if (!page->more) return out;
    after = page->hosts.back().key;
  }
}

// Read, change, write if nobody else did; else again. Runs on the store's thread after the first.
void GovernorSource::change(const std::string& key, const Change& change, const std::string& said,
                            const Done& done, int attempts) {
  const ClockPair now = clock_now();
  auto loaded = load_host(store_, key, now, governor_.rules()->longest_cooldown());
  if (!loaded) return done(Error{loaded.error()});
  const HostState next = change(std::move(loaded->state), now.mono);
  {
    const std::lock_guard guard(writes_mutex_);
    ++writes_;
  }
  save_host(store_, key, next, now, {{}, [=, this](const Result<std::uint64_t>& saved) {
                                       if (!saved) {
                                         done(Error{saved.error()});
                                       } else if (*saved > 0) {
                                         tell(key, key + " " + said);
                                         done(key + " " + said);
                                       } else if (attempts > 0) {
                                         this->change(key, change, said, done, attempts - 1);
                                       } else {
                                         done(Error{key + " is changed by others all the time"});
                                       }
                                       const std::lock_guard guard(writes_mutex_);
                                       if (--writes_ == 0) no_writes_.notify_all();
                                     }});
}

// Done when the last one is; with the first thing that went wrong, if anything did.
void GovernorSource::change_all(const std::vector<std::string>& keys, const Change& change,
                                const std::string& said, const Done& done) {
  struct Together {
    std::mutex mutex;
    std::size_t left;
    std::optional<Error> wrong;
  };
  auto together = std::make_shared<Together>();
  together->left = keys.size();
  const std::string many = std::to_string(keys.size()) + " keys: each " + said;
  const bool one = keys.size() == 1;
  for (const std::string& key : keys) {
    this->change(
        key, change, said,
        [together, done, many, one](const Result<std::string>& result) {
          std::unique_lock lock(together->mutex);
          if (!result && !together->wrong) together->wrong = Error{result.error()};
          if (--together->left > 0) return;
          lock.unlock();
          if (together->wrong) return done(*together->wrong);
          done(one ? *result : many);
        },
        kAttempts);
  }
}

void GovernorSource::open(std::string key, Duration length, std::string reason, Done done) {
  if (key.size() > kMaxKeySize - kHostPrefix.size()) return done(Error{"the key is too long"});
  auto keys = meant_by(key);
  if (!keys) return done(Error{keys.error()});
  if (keys->empty()) keys->push_back(std::move(key));  // before its first request
  const std::string said = "is shut for " + format_duration(length) + " by an operator" +
                           (reason.empty() ? "" : ": " + reason);
  change_all(
      *keys,
      [length, reason = std::move(reason)](HostState state, Instant now) {
        return operator_open(std::move(state), now, length, reason);
      },
      said, done);
}

void GovernorSource::close(std::string key, Done done) {
  auto keys = meant_by(key);
  if (!keys) return done(Error{keys.error()});
  if (keys->empty()) return done(Error{"nothing is known about " + key});
  change_all(
      *keys, [](HostState state, Instant now) { return operator_close(std::move(state), now); },
      "lets requests through again, by an operator", done);
}

// The file decides, so an order shows at once, before the workers have heard of it.
StopState GovernorSource::stop_state() {
  const auto reason = read_stop_file(state_directory_);
  if (!reason) return {facts_.stopped(), reason.error(), {}};
  if (!*reason) return {};
  return {true, **reason, made(state_directory_ + "/" + kStopFileName)};
}

// Whoever follows the file records the event.
void GovernorSource::stop(std::string reason, Done done) {
  const auto written = write_stop_file(state_directory_, reason);
  if (!written) return done(Error{written.error()});
  done("everything is stopped by an operator" + (reason.empty() ? "" : ": " + reason));
}

void GovernorSource::resume(Done done) {
  const auto removed = remove_stop_file(state_directory_);
  if (!removed) return done(Error{removed.error()});
  done(std::string(*removed ? "the emergency stop is over, by an operator"
                            : "there was no emergency stop"));
}

}  // namespace sluice
