#include "proxy/governor/governor.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

#include "policy/sentence.h"
#include "policy/state_key.h"
#include "proxy/clock.h"
#include "proxy/governor/credential.h"
#include "proxy/governor/refusals.h"
#include "proxy/known_keys.h"
#include "store/hosts.h"

namespace sluice {
namespace {

constexpr Duration kQuiet = 10min;          // then a gate that nobody uses is forgotten here
constexpr Duration kForgetAfter = 7 * 24h;  // and then, if it is closed, in the store
constexpr std::size_t kSweepAtOnce = 200;
constexpr unsigned kFlushEvery = 5;     // seconds, when there are more keys than
constexpr std::size_t kFewKeys = 1000;  // these, which are written down every second

std::atomic<std::uint64_t> next_generation{1};

// In [0, 1); a step of 2^-31 is fine enough to spread anything.
double random_share() {
  using Random = std::minstd_rand;
  thread_local Random random(std::random_device{}());
  return static_cast<double>(random() - Random::min()) /
         (static_cast<double>(Random::max() - Random::min()) + 1);
}

// draft-ietf-httpapi-idempotency-key-header: the client vouches that a repeat does no harm.
bool has_idempotency_key(const Head& request) {
  return std::any_of(request.fields.begin(), request.fields.end(), [](const Field& field) {
    return equals_ignoring_case(field.name, "idempotency-key");
  });
}

// The first price that can be read, if the answer names several.
Allowances::Bill bill_of(const CostRules& rules, const Head* response) {
  Allowances::Bill bill{.answered = response != nullptr};
  if (response == nullptr || rules.header.empty()) return bill;
  for (const Field& field : response->fields) {
    if (bill.named || !equals_ignoring_case(field.name, rules.header)) continue;
    bill.named = parse_cost(field.value);
    if (!bill.named) bill.unreadable = field.value;
  }
  return bill;
}

}  // namespace

Governor::Governor(Store& store, std::shared_ptr<const Rulebook> rules, Options options)
    : store_(store),
      options_(std::move(options)),
      salt_(load_salt(store)),
      rules_(std::move(rules)),
      rules_generation_(next_generation.fetch_add(1)),
      jobs_(&store, options_.jobs),
      allowances_(store, {options_.budget, options_.zone, options_.go_on_without_store},
                  [this](const std::string& key) {
                    if (const auto gate = gates_.find(key)) wake_at(gate, monotonic_now());
                  }),
      watch_(options_.anomaly, options_.anomaly_zone, clock_now()),
      board_(store, watch_.rules(), options_.on_lost),
      gates_(&allowances_, options_.anomaly.enabled ? &watch_ : nullptr),
      sweep_(store),
      agenda_(
          std::make_unique<Agenda>([this](Gate& gate) { wake(gate); }, [this] { keep_house(); })) {}

Governor::~Governor() {
  allowances_.close();
  std::unique_ptr<Agenda> ended;
  {
    const std::lock_guard guard(agenda_mutex_);
    ended = std::move(agenda_);
  }
  ended.reset();
  flush();
  jobs_.flush(clock_now());
  board_.close(clock_now());
  std::unique_lock lock(writes_mutex_);
  no_writes_.wait(lock, [this] { return writes_ == 0; });
}

std::shared_ptr<const Rulebook> Governor::rules() const {
  const std::lock_guard guard(rules_mutex_);
  return rules_;
}

void Governor::replace_rules(std::shared_ptr<const Rulebook> rules) {
  {
    const std::lock_guard guard(rules_mutex_);
    rules_ = std::move(rules);
    rules_generation_ = next_generation.fetch_add(1);
  }
  gates_.for_each([this, book = this->rules()](Gate& gate) {
    Gate::Effects effects;
    gate.renew(book, monotonic_now(), effects);
    carry_out(gate.shared_from_this(), std::move(effects));
  });
}

// Each thread has a pointer of its own to the rulebook, counted apart from the others', so that
// matches on different threads write to no common memory.
const std::shared_ptr<const Rulebook>& Governor::own_rules() const {
  thread_local std::uint64_t generation = 0;
  thread_local std::shared_ptr<const Rulebook> own;
  const std::uint64_t current = rules_generation_.load(std::memory_order_acquire);
  if (generation != current) {
    auto holder = std::make_shared<std::shared_ptr<const Rulebook>>(rules());
    own = std::shared_ptr<const Rulebook>(holder, holder->get());
    generation = current;
  }
  return own;
}

Match Governor::match(std::string_view host, std::uint16_t port, std::string_view path) const {
  const auto& book = own_rules();
  Match found = book->match(host, port, path);
  found.book = book;
  return found;
}

Errand Governor::prepare(const Ask& request) {
  const auto& book = own_rules();
  Errand errand;
  Journey& who = errand.journey;
  who.url.hash = watch_.url_of(request);
  who.match = book->match(request.host, request.port, request.path);
  who.match.book = book;
  who.arrived = monotonic_now();
  const Policy& policy = *who.match.policy;
  std::string credential;
  if (policy.scope == Scope::credential) {
    credential = credential_hash(salt_, policy.credential_headers, request.request);
  }
  thread_local std::string key;
  key.clear();
  append_state_key(key, policy, request.host, request.port, request.secure, credential);
  errand.gate = gate_for(key, who.arrived);
  who.client = request.client;
  who.connection = request.connection;
  who.job = request.job;
  who.job_run = request.job_run;
  who.job_max_requests = request.job_max_requests;
  who.tunnel = request.tunnel;
  who.cost = cost_of(who.match.rules->cost, request.host, request.path, request.tunnel);
  who.method = request.request.method;
  who.vouched_for = has_idempotency_key(request.request);
  who.url.name = watch_.name_of(request, who.url.hash, who.arrived);
  return errand;
}

// DESIGN §1: a bare host name means every key of that host, also those that nobody had asked about
// when an operator shut it: while that order stands, it answers for them.
std::shared_ptr<Gate> Governor::gate_for(std::string_view key, Instant now) {
  for (const std::string_view name : keys_above(key)) {
    if (name.empty()) break;
    auto above = gates_.find_or_make(name);
    if (!above->is_current(store_.version())) {
      Gate::Effects effects;
      refresh(*above, effects);
      carry_out(above, std::move(effects));
    }
    if (above->shut_by_operator(now)) return above;
  }
  return gates_.find_or_make(key);
}

Admission Governor::admit_again(Permit permit, Asker& asker, Mailbox& mailbox) {
  Errand errand{permit.body_->gate, permit.body_->journey};
  ++errand.journey.tries;
  permit.done();
  return admit(std::move(errand), asker, mailbox);
}

// False: the store cannot say, and nothing is known.
bool Governor::refresh(Gate& gate, Gate::Effects& effects) {
  if (gate.is_current(store_.version())) return true;
  const ClockPair now = clock_now();
  auto loaded = load_host(store_, gate.key(), now, own_rules()->longest_cooldown());
  if (!loaded) return gate.is_known() || options_.go_on_without_store;
  gate.load(std::move(loaded->state), loaded->store_version,
            own_rules()->load().set->fallback().rules, now.mono, effects);
  return true;
}

Admission Governor::admit(Errand errand, Asker& asker, Mailbox& mailbox) {
  const std::shared_ptr<Gate> gate = errand.gate;
  if (!errand.journey.pass && !errand.journey.job.empty()) {
    const Journey& who = errand.journey;
    auto entrance = jobs_.enter({who.job, who.job_run, who.job_max_requests}, clock_now());
    if (entrance.refusal) return {.refusal = std::move(entrance.refusal)};
    errand.journey.pass = std::make_shared<JobTable::Pass>(std::move(entrance.pass));
  }
  const auto job = errand.journey.pass;  // what waits takes the journey along
  Gate::Effects effects;
  if (!refresh(*gate, effects)) {
    note_refused(errand.journey);
    const ClockPair now = clock_now();
    Gate::View view = gate->view();
    view.policy = errand.journey.match.policy->name;  // the gate has not seen a request yet
    const auto read = load_host(store_, gate->key(), now, own_rules()->longest_cooldown());
    const std::string why = read ? store_.health().sentence : read.error();
    return {.refusal = store_unavailable(gate->key(), view, why, now)};
  }
  const Instant since = monotonic_now();
  auto asked = gate->ask(errand.journey, asker, mailbox, random_share(), since, effects);
  carry_out(gate, std::move(effects));
  switch (asked.kind) {
    case Gate::Asked::Kind::go: return grant(gate, std::move(errand.journey), asked.pass);
    case Gate::Asked::Kind::held: return {.hold = Hold(std::move(asked.visitor), job, since)};
    case Gate::Asked::Kind::refused: break;
    case Gate::Asked::Kind::queue_full: {
      const ClockPair now = clock_now();
      note_refused(errand.journey);
      return {.refusal = queue_full(gate->key(), gate->view(), now)};
    }
  }
  note_refused(errand.journey);
  return {.refusal = refusal_by(*gate, asked.pass, false)};
}

// A retry was counted when it first went.
void Governor::note_refused(const Journey& who) {
  if (who.pass && who.tries == 0) who.pass->refused();
}

Refusal Governor::refusal_by(Gate& gate, const Gate::Pass& pass, bool held) {
  const ClockPair now = clock_now();
  if (pass.by == Gate::By::store) {
    return store_unavailable(gate.key(), gate.view(),
                             pass.why.empty() ? store_.health().sentence : pass.why, now);
  }
  return not_now(gate, pass, held, now);
}

Admission Governor::grant(const std::shared_ptr<Gate>& gate, Journey&& who,
                          const Gate::Pass& pass) {
  std::unique_ptr<Permit::Body> body(
      new Permit::Body{*this, gate, std::move(who), pass.ticket, pass.pace, pass.taken});
  if (pass.act == Decision::Act::probe) body->silence = pass.until;
  return {.permit = Permit(std::move(body))};
}

Judgement Governor::tell(Permit::Body& permit, const Outcome& outcome, bool safe, Asker* asker,
                         Mailbox* mailbox) {
  Gate::Effects effects;
  auto told = permit.gate->tell(permit, outcome, safe, random_share(), monotonic_now(), asker,
                                mailbox, effects);
  if (!outcome.amends) {
    tally_.ended(outcome);
    if (permit.journey.pass) permit.journey.pass->told(outcome.kind, monotonic_now());
  }
  carry_out(permit.gate, std::move(effects));
  // An answer of the origin's is worth more than a refusal of ours.
  if (told.retry && allowances_.stopped(permit.journey)) told.retry = false;
  return {outcome.kind, told.retry, Hold(told.wait)};
}

Hold Governor::tell_exhausted(const Permit::Body& permit, const Outcome& outcome, Asker& asker,
                              Mailbox& mailbox) {
  Gate::Effects effects;
  auto kept =
      permit.gate->tell_exhausted(permit, outcome, monotonic_now(), asker, mailbox, effects);
  carry_out(permit.gate, std::move(effects));
  return Hold(std::move(kept));
}

void Governor::done(Permit::Body& permit) {
  Gate::Effects effects;
  permit.gate->done(permit.pace, monotonic_now(), effects);
  carry_out(permit.gate, std::move(effects));
}

void Governor::settle(Permit::Body& permit, const Head* response) {
  const Allowance taken = std::exchange(permit.taken, {});
  const Journey& who = permit.journey;
  if (!permit.sent) {
    allowances_.give_back(permit.gate->key(), who, taken);
    return allowances_.tell_ready();
  }
  if (!who.cost) return;
  allowances_.spent(who, taken, bill_of(who.match.rules->cost, response));
  allowances_.tell_ready();
}

void Governor::wake(Gate& gate) {
  Gate::Effects effects;
  refresh(gate, effects);
  gate.pump(random_share(), monotonic_now(), effects);
  carry_out(gate.shared_from_this(), std::move(effects));
}

void Governor::carry_out(const std::shared_ptr<Gate>& gate, Gate::Effects&& effects) {
  for (const AnomalyNews& news : effects.anomalies)
    board_.report(gate, gate->key(), news, clock_now());
  if (effects.changed) record(*gate, *effects.changed, effects.shut);
  if (effects.tripped) tally_.tripped();
  if (!effects.pace.empty()) {
    tally_.pace_changed();
    spdlog::info("{}: {}", gate->key(), effects.pace);
  }
  if (effects.foreseen != Foreseen::forward) {
    tally_.observed(effects.foreseen == Foreseen::wait);
    if (!effects.would.empty()) {
      spdlog::info("{}: forwarded because its policy only observes; enforced, {}", gate->key(),
                   effects.would);
    }
  }
  if (effects.save) save(gate, *effects.save);
  for (auto& word : effects.words) deliver(gate, std::move(word));
  if (effects.wake) wake_at(gate, *effects.wake);
}

void Governor::wake_at(const std::shared_ptr<Gate>& gate, Instant when) {
  const std::lock_guard guard(agenda_mutex_);
  if (agenda_) agenda_->add(gate, when);
}

void Governor::record(const Gate& gate, const HostState& state, bool shut) {
  const ClockPair now = clock_now();
  const std::string text = sentence(gate.key(), state, now.mono, now.utc);
  spdlog::info("{}", text);
  append_or(store_,
            {now.utc, EventKind::transition, gate.key(), text,
             shut ? EventMark::begins : EventMark::none},
            options_.on_lost);
}

void Governor::save(const std::shared_ptr<Gate>& gate, const HostState& state) {
  {
    const std::lock_guard guard(writes_mutex_);
    ++writes_;
  }
  save_host(store_, gate->key(), state, clock_now(),
            {{}, [this, gate](const Result<std::uint64_t>& version) { saved(gate, version); }});
}

// On the store's thread.
void Governor::saved(const std::shared_ptr<Gate>& gate, const Result<std::uint64_t>& version) {
  const ClockPair now = clock_now();
  std::optional<HostState> stored;
  if (version && *version == 0) {
    if (auto loaded = load_host(store_, gate->key(), now, rules()->longest_cooldown())) {
      stored = std::move(loaded->state);
    }
  }
  if (!version) spdlog::warn("{} is not written down: {}", gate->key(), version.error());
  Gate::Effects effects;
  gate->saved(version, stored ? &*stored : nullptr, options_.go_on_without_store, now.mono,
              effects);
  carry_out(gate, std::move(effects));
  const std::lock_guard guard(writes_mutex_);
  if (--writes_ == 0) no_writes_.notify_all();
}

// To whoever waits, on its own loop. One that has left gives back what it was granted.
void Governor::deliver(const std::shared_ptr<Gate>& gate, Gate::Effects::Word word) {
  const std::shared_ptr<Visitor> visitor = std::move(word.to);
  if (word.durable) {
    visitor->mailbox.post([visitor] {
      if (visitor->asker != nullptr) visitor->asker->on_durable();
    });
    return;
  }
  auto admission = std::make_shared<Admission>();
  if (word.pass.act == Decision::Act::refuse) {
    note_refused(visitor->journey);
    admission->refusal = refusal_by(*gate, word.pass, true);
  } else {
    *admission = grant(gate, std::move(visitor->journey), word.pass);
  }
  visitor->mailbox.post([visitor, admission] {
    if (visitor->asker != nullptr) visitor->asker->on_admission(std::move(*admission));
  });
}

void Governor::flush() {
  gates_.for_each([this](Gate& gate) {
    if (const auto state = gate.take_dirty()) save(gate.shared_from_this(), *state);
  });
}

void Governor::watch_anomalies() {
  const ClockPair now = clock_now();
  watch_.tick(now);
  for (const auto& gate : board_.gates()) {
    Gate::Effects effects;
    gate->tick_anomalies(now.mono, effects);
    carry_out(gate, std::move(effects));
  }
  board_.save(now);
}

// Who waits hears of what another process has done, such as `sluice close`.
void Governor::tell_news() {
  const std::uint64_t version = store_.version();
  if (std::exchange(told_version_, version) == version) return;
  gates_.for_each([this](Gate& gate) {
    if (gate.has_waiting()) wake(gate);
  });
}

void Governor::keep_house() {
  watch_anomalies();
  tell_news();
  if (++seconds_ % kFlushEvery == 0 || gates_.size() <= kFewKeys) flush();
  jobs_.flush(clock_now());
  allowances_.tidy();
  if (seconds_ % 60 == 0) gates_.remove_idle(monotonic_now(), kQuiet);
  [[maybe_unused]] const auto removed = sweep_.step(clock_now(), kForgetAfter, kSweepAtOnce);
}

}  // namespace sluice
