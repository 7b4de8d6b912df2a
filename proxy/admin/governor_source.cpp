#include "proxy/admin/governor_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "policy/breaker.h"
#include "policy/sentence.h"
#include "policy/state_key.h"
#include "policy/units.h"
#include "proxy/clock.h"
#include "proxy/cost_report.h"
#include "proxy/known_keys.h"
#include "proxy/stop_file.h"

namespace sluice {
namespace {

UtcTime in_utc(Instant at, const ClockPair& now) {
  return at == Instant{} ? UtcTime{} : now.utc + (at - now.mono);
}

// The gate knows better, where there is one.
Gate::View view_of(const std::shared_ptr<Gate>& gate, const HostState& stored) {
  if (gate) return gate->view();
  Gate::View view;
  view.state = stored;
  return view;
}

const HostState& newer(const HostState& in_use, const HostState& stored) {
  return stored.version > in_use.version ? stored : in_use;
}

void add_period(Budget& budget, const TermReport& term, const BudgetConfig& config) {
  if (term.limit == 0) return;
  budget.periods.push_back({term.word, in_money(term.limit), in_money(term.spent),
                            in_money(term.reserved()), config.alert_at, config.stop_at,
                            term.span.to});
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
  const Tally::Sums sums = governor_.tally().sums();
  totals.outcomes = sums.outcomes;
  totals.hold = sums.hold;
  totals.overhead = sums.overhead;
  totals.pace_changes = sums.pace_changes;
  totals.would_wait = sums.would_wait;
  totals.would_refuse = sums.would_refuse;
  for (std::size_t i = 0; i < Tally::kReasons.size(); ++i)
    totals.refusals.push_back({std::string(Tally::kReasons[i]), sums.refused[i]});
  totals.store_failures = store_.health().failures;
  totals.in_flight = counted_.in_flight;
  totals.held = counted_.held;
  const auto begun = governor_.anomalies().begun();
  for (std::size_t i = 0; i < kAnomalyKinds; ++i) {
    totals.anomalies.push_back({std::string(anomaly_word(static_cast<AnomalyKind>(i))), begun[i]});
  }
  if (facts_.alerts != nullptr) {
    totals.alerts_sent = facts_.alerts->sent;
    totals.alerts_failed = facts_.alerts->failed;
    totals.alerts_dropped = facts_.alerts->dropped;
    totals.alerts_waiting = facts_.alerts->waiting;
  }
  return totals;
}

// The gate of a key in use is ahead of the store by a few seconds of counting, unless somebody has
// written to the store since the gate last looked.
KeyRow GovernorSource::row_of(std::string key, const HostState& stored, const ClockPair& now) {
  KeyRow row;
  Gate::Glance here;
  const auto rules = governor_.rules();
  const Policy& policy = policy_of(*rules, key);
  if (const auto gate = governor_.gates().find(key)) here = gate->glance(policy.rules, now.mono);
  row.in_flight = static_cast<std::uint32_t>(here.in_flight);
  row.held = static_cast<std::uint32_t>(here.held);
  row.policy = here.policy.empty() ? policy.name : here.policy;
  if (stored.version > here.version) here = Gate::glance_at(stored, policy.rules, now.mono);
  row.key = std::move(key);
  row.phase = here.phase;
  row.cause = here.cause;
  row.until = in_utc(here.until, now);
  row.level = here.level;
  row.delay = here.delay;
  row.counts = here.counts;
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
    counting_.in_flight += row.in_flight;
    counting_.held += row.held;
  }
  if (last) counted_ = counting_;
}

std::optional<KeyDetail> GovernorSource::key(std::string_view key) {
  const ClockPair now = clock_now();
  const auto gate = governor_.gates().find(key);
  const auto loaded = load_host(store_, key, now, governor_.rules()->longest_cooldown());
  const HostState stored = loaded ? loaded->state : HostState{};
  const Gate::View view = view_of(gate, stored);
  // A gate that nobody has been through stands above others.
  if (view.policy.empty() && stored.version == 0) return std::nullopt;
  const HostState& state = newer(view.state, stored);
  KeyDetail detail;
  detail.row = row_of(std::string(key), stored, now);
  detail.sentence = sentence(key, state, now.mono, now.utc);
  detail.status = state.status;
  detail.opened_at = in_utc(state.opened_at, now);
  detail.reason = state.reason;
  detail.said = state.said;
  if (gate) detail.pace = gate->pace(now.mono);
  detail.observed_only = view.observed;
  return detail;
}

std::vector<Anomaly> GovernorSource::anomalies() {
  std::vector<Anomaly> out;
  for (NotedAnomaly& one : governor_.anomalies().listed()) {
    out.push_back({std::string(anomaly_word(one.kind)), std::move(one.key), std::move(one.sentence),
                   std::string(action_word(one.action)), one.since, one.ended});
  }
  return out;
}

// One that cannot be read is shown as none: store_health() says why.
Budget GovernorSource::budget() {
  const Governor::Options& options = governor_.options();
  Budget budget;
  budget.currency = options.budget.currency;
  const auto report = cost_report(store_, options.budget, options.zone, utc_now());
  if (!report) return budget;
  add_period(budget, report->day, options.budget);
  add_period(budget, report->month, options.budget);
  for (const SpenderReport& line : report->spenders)
    if (line.requests_today > 0)
      budget.lines.push_back({line.kind, line.name, in_money(line.today), line.requests_today});
  std::stable_sort(budget.lines.begin(), budget.lines.end(),
                   [](const BudgetLine& a, const BudgetLine& b) { return a.spent > b.spent; });
  return budget;
}

std::vector<Job> GovernorSource::jobs() {
  std::vector<Job> jobs;
  for (JobRow& row : governor_.jobs().rows()) {
    Job& job = jobs.emplace_back();
    job.name = std::move(row.name);
    job.requests = row.state.requests;
    job.max_requests = row.rules.max_requests;
    job.in_flight = row.in_flight;
    job.max_concurrency = row.rules.max_concurrency;
    job.failures = row.state.failures;
    job.failures_in_a_row = row.state.failures_in_a_row;
    job.failed = row.state.failed;
    job.spent = in_money(row.state.cost);
    job.run = std::move(row.state.run);
    job.refused = row.state.refused;
    job.held = row.state.held;
    job.waited = row.state.waited;
  }
  return jobs;
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

// Done on the store's thread.
void GovernorSource::change(const std::string& key, const Change& change, const std::string& said,
                            const Done& done) {
  const ClockPair now = clock_now();
  {
    const std::lock_guard guard(writes_mutex_);
    ++writes_;
  }
  change_host(store_, key, now, governor_.rules()->longest_cooldown(),
              [change, now](HostState state) { return change(std::move(state), now.mono); },
              {{}, [=, this](const Result<std::uint64_t>& saved) {
                 if (saved) {
                   tell(key, key + " " + said);
                   done(key + " " + said);
                 } else {
                   done(Error{saved.error()});
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
    this->change(key, change, said, [together, done, many, one](const Result<std::string>& result) {
      std::unique_lock lock(together->mutex);
      if (!result && !together->wrong) together->wrong = Error{result.error()};
      if (--together->left > 0) return;
      lock.unlock();
      if (together->wrong) return done(*together->wrong);
      done(one ? *result : many);
    });
  }
}

Result<std::string> GovernorSource::order_key(const std::string& named) {
  auto key = read_key(named);
  if (!key) return key;
  if (key->size() > kMaxKeySize - kHostPrefix.size()) return Error{"the key is too long"};
  const auto known = stored_keys(*key);
  const auto shared = shared_key(*governor_.rules(), *key);
  if (shared && known && known->empty())
    return Error{*key + " has no state of its own, it is under one with all hosts of its policy: " +
                 *shared};
  return key;
}

// DESIGN §1: a bare host name means every key of that host.
Result<std::vector<std::string>> GovernorSource::stored_keys(const std::string& key) {
  auto known = find_keys(store_, key, clock_now(), governor_.rules()->longest_cooldown());
  if (!known) return Error{known.error()};
  std::vector<std::string> out;
  for (KnownKey& one : *known) out.push_back(std::move(one.key));
  return out;
}

bool GovernorSource::knows(const std::string& key) {
  const auto keys = stored_keys(key);
  return !keys || !keys->empty();
}

void GovernorSource::open(std::string key, Duration length, std::string reason, Done done) {
  auto keys = stored_keys(key);
  if (!keys) return done(Error{keys.error()});
  // Itself in any case: it answers for the keys of its host that nobody has asked about yet.
  if (keys->empty() || keys->front() != key) keys->insert(keys->begin(), std::move(key));
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
  const auto keys = stored_keys(key);
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

// An event like any other that is told, so that it takes the whole way.
void GovernorSource::test_alert(Done done) {
  if (facts_.alerts == nullptr) {
    return done(Error{"there is nobody to tell: neither alerts.webhook nor alerts.command is set"});
  }
  store_.append({utc_now(),
                 EventKind::alert,
                 {},
                 "a test alert, asked for by an operator",
                 EventMark::begins},
                {{}, [done](const Result<std::uint64_t>& kept) {
                   if (!kept) return done(Error{kept.error()});
                   done(std::string("a test alert is on its way"));
                 }});
}

}  // namespace sluice
