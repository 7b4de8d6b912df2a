#include "proxy/governor/gate.h"

#include <algorithm>
#include <utility>

#include "policy/host_merge.h"
#include "policy/sentence.h"
#include "proxy/clock.h"

namespace sluice {
namespace {

constexpr double kRetryShare = 0.2;   // of the requests to a key
constexpr double kMostRetries = 100;  // saved up
constexpr const char* kTooSlow = "it has not answered in time";
constexpr Duration kSayAgain = 1min;     // what an observing policy would have done
constexpr Duration kBlockPatience = 5s;  // for a write of the request limits or the budget

}  // namespace

void Gate::fetch() const {
  constexpr std::size_t line = 64;
  const char* const from = reinterpret_cast<const char*>(&mutex_);
  const char* const to = reinterpret_cast<const char*>(&record_) + line;
  for (const char* at = from; at < to; at += line) __builtin_prefetch(at, 1);
}

bool Gate::is_current(std::uint64_t store_version) {
  const std::lock_guard guard(mutex_);
  return record_.is_current(store_version);
}

bool Gate::is_known() {
  const std::lock_guard guard(mutex_);
  return record_.is_known();
}

void Gate::load(HostState stored, std::uint64_t store_version, const Rules& rules, Instant now,
                Effects& out) {
  const std::lock_guard guard(mutex_);
  if (!record_.is_known()) {
    record_.read_first(stored, store_version);
    state_ = std::move(stored);
    pace_ = pace_restored(rules, state_.pace, now);
  } else if (record_.is_saving()) {
    heed(std::move(stored), now, out);
  } else if (record_.is_news(stored, store_version)) {
    adopt(stored, rules_ != nullptr ? *rules_ : rules, now, out);
  }
}

// Another process has shut the key while we write: nobody goes on until both words are put
// together. A later epoch cannot be our own write.
void Gate::heed(HostState stored, Instant now, Effects& out) {
  if (stored.phase == Phase::closed || stored.epoch <= state_.epoch) return;
  state_ = shut_as(state_, std::move(stored));
  if (waiting() > 0) wake_at(out, now);
}

// Another process has written.
void Gate::adopt(const HostState& stored, const Rules& rules, Instant now, Effects& out) {
  const HostState before = state_;
  state_ = record_.merge(std::move(state_), stored);
  pace_adopted(rules, pace_, state_.pace, now);
  if (closed_by_operator(before)) {
    pace_cleared(pace_);
    state_.pace = pace_.learned;
    unusual_.pardon(now, out.anomalies);
  } else if (before.phase != Phase::closed && state_.phase == Phase::closed) {
    pace_reopened(rules, pace_);
  }
  const bool moved = state_.epoch != before.epoch || state_.phase != before.phase ||
                     state_.until != before.until || state_.leases != before.leases;
  if (moved && waiting() > 0) wake_at(out, now);
}

// A probe leaves the end of the cooldown where it was.
bool Gate::closed_by_operator(const HostState& before) const {
  return state_.phase == Phase::closed && state_.until == Instant{} &&
         state_.closed_at != before.closed_at;
}

// What the breaker, the pacer and the allowances say now. Asking takes what it is given: a lease, a
// slot.
Gate::Pass Gate::pass(const Journey& who, double jitter, Instant now) {
  using Act = Decision::Act;
  const Rules& rules = *who.match.rules;
  std::optional<HostState> before;
  Decision decision{.act = Act::forward, .ticket = {.epoch = state_.epoch}};
  if (state_.phase != Phase::closed) {  // else it has nothing to say
    before = state_;
    Step step = decide(rules, std::move(state_), now, {who.arrived});
    state_ = std::move(step.next);
    decision = step.decision;
  }
  const bool watches = rules.mode == Mode::observe;
  const Act act = watches ? Act::forward : decision.act;
  Pass out{act, decision.until, decision.ticket};
  if (watches) {
    out.ticket.epoch = state_.epoch;
    out.foreseen = foresee(who, decision, now);
  }
  if (act == Act::hold || act == Act::refuse) return out;

  const Instant patience = who.arrived + rules.hold.max_wait;
  const auto hopeless = [&](Instant at) {
    return now >= patience || (at > patience && at != Instant::max());
  };
  const auto later = [&](Instant at) -> Pass {
    if (before) state_ = std::move(*before);  // the lease was not used
    if (hopeless(at)) return {Act::refuse, at};
    const Instant again = at == Instant::max() ? pace_gives_up(pace_, now) : at;
    return {Act::hold, std::min(again, patience)};
  };
  if (!watches && unusual_.next_at() > now) return later(unusual_.next_at());
  if (who.crawl_delay) pace_.flight.crawl_delay = *who.crawl_delay;
  const Instant opens = watches ? now : pace_opens(rules, pace_, now);
  if (opens > now && !(hopeless(opens) && pace_only_guesses(rules, pace_, now))) {
    return later(opens);
  }
  if (allowances_ != nullptr && Allowances::concern(who)) take_allowance(who, now, out);
  // What an allowance stops was never sent: to the pace it is as if nobody had asked.
  if (out.act == act) out.pace = pace_take(rules, pace_, now, jitter, who.tunnel);
  if (out.by != By::key && before) state_ = std::move(*before);
  if (out.act != Act::hold && out.act != Act::refuse) unusual_.went(now);
  return out;
}

// Last, because what is taken counts from now on.
void Gate::take_allowance(const Journey& who, Instant now, Pass& passed) {
  using Act = Decision::Act;
  using Kind = Allowances::Answer::Kind;
  auto answer = allowances_->take(key_, who);
  const bool soon = answer.kind == Kind::soon;
  if (!soon) {
    block_due_ = Instant{};
  } else if (block_due_ == Instant{} || waiting() == 0) {
    block_due_ = now + kBlockPatience;
  }
  passed.why = std::move(answer.why);
  unpriced_ = answer.kind == Kind::price ? passed.why : std::string();
  if (answer.kind == Kind::go) {
    passed.taken = answer.taken;
    return;
  }
  const auto stay = [&](Act act, By by, Instant until) {
    passed = {.act = act, .until = until, .by = by, .why = std::move(passed.why)};
  };
  switch (answer.kind) {
    case Kind::go: break;
    case Kind::soon:
      if (now < block_due_) return stay(Act::hold, By::store, block_due_);
      passed.why = kTooSlow;
      return stay(Act::refuse, By::store, {});
    case Kind::limit: {
      const bool waits = answer.until <= who.arrived + who.match.rules->hold.max_wait;
      return stay(waits ? Act::hold : Act::refuse, By::limit, answer.until);
    }
    case Kind::budget: return stay(Act::refuse, By::budget, answer.until);
    case Kind::price: {
      const Instant patience = who.arrived + who.match.rules->hold.max_wait;
      return stay(now < patience ? Act::hold : Act::refuse, By::price, patience);
    }
    case Kind::failed: return stay(Act::refuse, By::store, {});
  }
}

// Before all else, and nothing is taken (DESIGN §3).
std::optional<Gate::Pass> Gate::out_of_money(const Journey& who) {
  if (!who.cost || allowances_ == nullptr) return std::nullopt;
  auto stop = allowances_->stopped(who);
  if (!stop) return std::nullopt;
  return Pass{.act = Decision::Act::refuse,
              .until = stop->until,
              .by = By::budget,
              .why = std::move(stop->why)};
}

Foreseen Gate::foresee(const Journey& who, const Decision& decision, Instant now) const {
  using Act = Decision::Act;
  if (decision.act == Act::hold) return Foreseen::wait;
  if (decision.act == Act::refuse) return Foreseen::refuse;
  const Rules& rules = *who.match.rules;
  const Instant opens = pace_opens(rules, pace_, now);
  if (opens <= now) return Foreseen::forward;
  const bool soon = opens <= now + rules.hold.max_wait || opens == Instant::max();
  return soon ? Foreseen::wait : Foreseen::refuse;
}

void Gate::note_watched(const Pass& passed, Instant now, Effects& out) {
  const bool allowed = passed.why.empty();
  out.foreseen = allowed ? passed.foreseen : Foreseen::refuse;
  if (out.foreseen == Foreseen::forward) return;
  if (said_would_ != Instant{} && now < said_would_ + kSayAgain) return;
  said_would_ = now;
  out.would = out.foreseen == Foreseen::wait ? "it would wait: " : "it would be refused: ";
  if (!allowed) {
    out.would += passed.why;
  } else if (phase_at(state_, now) == Phase::closed) {
    out.would += pace_text(now);
  } else {
    out.would += "shut after " + shut_by(state_);
  }
}

Gate::Asked Gate::ask(Journey& who, Asker& asker, Mailbox& mailbox, double jitter, Instant now,
                      Effects& out) {
  const std::lock_guard guard(mutex_);
  const bool first_try = who.tries == 0;
  const AskedUrl url{who.url.hash, std::exchange(who.url.name, {})};
  Asked asked = answer(who, asker, mailbox, jitter, now, out);
  if (watch_ != nullptr && first_try) watch_ask(url, asked.kind, now, out);
  return asked;
}

Gate::Asked Gate::answer(Journey& who, Asker& asker, Mailbox& mailbox, double jitter, Instant now,
                         Effects& out) {
  using Act = Decision::Act;
  last_used_ = now;
  if (state_.version == 0) record_.touch();  // so that it is listed while it waits for an answer
  const Rules& rules = *who.match.rules;
  if (rules_ != &rules) follow(who.match);
  const bool behind_others = waiting() > 0 && who.tries == 0 && rules.mode == Mode::enforce;
  Pass passed{.act = Act::hold};
  if (auto stop = out_of_money(who)) {
    passed = *std::move(stop);
  } else if (!behind_others) {
    passed = pass(who, jitter, now);
  }
  // Nobody is told of a cooldown that a crash could still undo.
  if (passed.act == Act::refuse && !record_.is_durable())
    passed = {.act = Act::hold, .until = Instant::max()};
  if (passed.act == Act::forward) {
    count_forward(who, out);
    note_watched(passed, now, out);
    return {Asked::Kind::go, std::move(passed)};
  }
  if (passed.act == Act::refuse) {
    count_refused();
    return {Asked::Kind::refused, passed};
  }
  const bool first = who.tries > 0;
  if (passed.act == Act::hold && !first && waiting() >= rules.hold.max_queue) {
    count_refused();
    return {Asked::Kind::queue_full, passed};
  }
  auto visitor =
      std::make_shared<Visitor>(Visitor{mailbox, &asker, shared_from_this(), std::move(who)});
  if (passed.act == Act::probe) {
    record_.wait_for_it({visitor, passed});
    save_soon(out);
  } else {
    if (waiting() == 0) apart_ = passed.by == By::limit;
    enqueue(visitor, first);
    const Instant turn = apart_ ? now : *queue_->turns.next_deadline();
    wake_at(out, behind_others ? turn : passed.until);
  }
  return {Asked::Kind::held, passed, std::move(visitor)};
}

void Gate::leave(Visitor& visitor) {
  const std::lock_guard guard(mutex_);
  if (visitor.id != 0) dequeue(visitor.id);
}

void Gate::enqueue(std::shared_ptr<Visitor> visitor, bool first) {
  if (!queue_) queue_ = std::make_unique<Queue>(Queue{FairQueue(SIZE_MAX)});
  const Journey& who = visitor->journey;
  visitor->id = ++last_id_;
  queue_->turns.push(
      {.id = visitor->id,
       .job = std::hash<std::string>{}(who.job),
       .client = who.client,
       .connection = who.connection,
       .deadline = std::max(who.arrived + who.match.rules->hold.max_wait, block_due_)},
      first);
  queue_->visitors.emplace(visitor->id, std::move(visitor));
}

std::shared_ptr<Visitor> Gate::dequeue(std::uint64_t id) {
  std::shared_ptr<Visitor> out;
  if (!queue_) return out;
  const auto found = queue_->visitors.find(id);
  if (found == queue_->visitors.end()) return out;
  out = std::move(found->second);
  queue_->visitors.erase(found);
  queue_->turns.remove(id);
  if (queue_->visitors.empty()) queue_.reset();
  return out;
}

// The rules of the latest request are what reports are about.
void Gate::follow(const Match& match) {
  rules_ = match.rules;
  book_ = match.book;
  policy_ = match.policy->name;
}

void Gate::renew(const std::shared_ptr<const Rulebook>& book, Instant now, Effects& out) {
  const std::lock_guard guard(mutex_);
  if (waiting() == 0) return;
  for (const auto& [id, visitor] : queue_->visitors) {
    Journey& who = visitor->journey;
    who.match = book->renewed(who.match);
    who.match.book = book;
    queue_->turns.set_deadline(id, who.arrived + who.match.rules->hold.max_wait);
  }
  follow(queue_->visitors.at(queue_->turns.front()->id)->journey.match);
  wake_at(out, now);
}

// Whose turn it is, but for those under these rules.
const Waiter* Gate::next_turn(const std::vector<const Rules*>& apart) const {
  if (waiting() == 0) return nullptr;
  if (apart.empty()) return queue_->turns.front();
  return queue_->turns.front([&](const Waiter& waiter) {
    const Rules* const rules = queue_->visitors.at(waiter.id)->journey.match.rules;
    return std::find(apart.begin(), apart.end(), rules) == apart.end();
  });
}

// Lets through whoever may go now, in order, and says when to look again. `limits` may be those of
// a role: who waits for them stands aside.
void Gate::pump(double jitter, Instant now, Effects& out) {
  const std::lock_guard guard(mutex_);
  wake_ = Instant::max();  // whatever was asked for before: below it is asked for again
  using Act = Decision::Act;
  std::vector<const Rules*> apart;
  bool key_holds = false;
  while (const Waiter* const next = key_holds ? nullptr : next_turn(apart)) {
    const std::uint64_t id = next->id;
    const std::shared_ptr<Visitor> visitor = queue_->visitors.at(id);
    auto stop = out_of_money(visitor->journey);
    const Pass passed = stop ? *std::move(stop) : pass(visitor->journey, jitter, now);
    if (passed.act == Act::hold) {
      wake_at(out, std::min(passed.until, *queue_->turns.next_deadline()));
      key_holds = passed.by != By::limit;
      apart.push_back(visitor->journey.match.rules);
      continue;
    }
    if (passed.act == Act::refuse && !record_.is_durable()) return;
    queue_->turns.take_turn(id);  // unlike one that is removed
    dequeue(id);
    if (passed.act == Act::probe) {
      record_.wait_for_it({visitor, passed});
      save_soon(out);
      continue;
    }
    if (passed.act == Act::forward) count_forward(visitor->journey, out);
    if (passed.act == Act::refuse) count_refused();
    out.words.push_back({.to = visitor, .pass = passed});
  }
  apart_ = !key_holds;
  if (waiting() == 0 || !record_.is_durable()) return;
  const bool asked_store = block_due_ != Instant{};
  for (const Waiter& late : queue_->turns.expire(now)) {
    auto visitor = std::move(queue_->visitors.at(late.id));
    queue_->visitors.erase(late.id);
    count_refused();
    out.words.push_back({.to = std::move(visitor),
                         .pass = {.act = Act::refuse,
                                  .until = state_.until,
                                  .by = asked_store         ? By::store
                                        : unpriced_.empty() ? By::key
                                                            : By::price,
                                  .why = asked_store ? kTooSlow : unpriced_}});
  }
  if (queue_->visitors.empty()) queue_.reset();
}

Gate::Told Gate::tell(Permit::Body& permit, const Outcome& outcome, bool safe, double jitter,
                      Instant now, Asker* asker, Mailbox* mailbox, Effects& out) {
  const std::lock_guard guard(mutex_);
  const Journey& who = permit.journey;
  const Rules& rules = *who.match.rules;
  record_.touch();
  const bool good = outcome.kind == OutcomeKind::success || outcome.kind == OutcomeKind::neutral;
  const PaceMemory learned = pace_.learned;
  if (!outcome.amends) pace_observe(rules, pace_, now, permit.pace, outcome);
  bool tighter = false;
  if (good && state_.phase == Phase::closed) {
    learn(rules, state_, now, outcome, jitter);
  } else {
    const HostState before = state_;
    learn(rules, state_, now, outcome, jitter);
    if (before.phase != Phase::closed && state_.phase == Phase::closed) {
      pace_reopened(rules, pace_);
    }
    note_transition(before, now, out);
    tighter = tightens(before, state_);
    if (state_.phase != before.phase && !tighter) save_soon(out);
  }
  note_pace(rules, learned, outcome, out);
  tighter |= pace_tightens(learned, pace_.learned);
  if (tighter) record_.tighten();
  Told told;
  // Also a refusal that changed nothing waits: it tells of the same cooldown.
  if (asker != nullptr && !good && !record_.is_durable()) told.wait = keep_back(*asker, *mailbox);
  if (tighter) save_soon(out);
  if (watch_ != nullptr && who.tries == 0 && !outcome.amends) watch_answer(outcome, now, out);
  const bool open = phase_at(state_, now) == Phase::open;
  const Instant opens = pace_opens_again(rules, pace_, now);
  const Instant again = std::max(open ? state_.until : now, opens == Instant::max() ? now : opens);
  told.retry = !good && safe && rules.mode == Mode::enforce &&
               rules.retry.on.contains(outcome.kind) && who.tries < rules.retry.max &&
               !outcome.no_credit && outcome.signal.should_retry.value_or(true) &&
               again <= who.arrived + rules.hold.max_wait && take_retry();
  if (waiting() > 0) wake_at(out, now);
  return told;
}

std::shared_ptr<Visitor> Gate::tell_exhausted(const Permit::Body& permit, const Outcome& outcome,
                                              Instant now, Asker& asker, Mailbox& mailbox,
                                              Effects& out) {
  const std::lock_guard guard(mutex_);
  const Rules& rules = *permit.journey.match.rules;
  const PaceMemory learned = pace_.learned;
  const bool waits = pace_exhausted(rules, pace_, now, permit.pace, outcome);
  note_pace(rules, learned, outcome, out);
  const bool tighter = pace_tightens(learned, pace_.learned);
  record_.touch();
  if (tighter) record_.tighten();
  auto kept = waits && !record_.is_durable() ? keep_back(asker, mailbox) : nullptr;
  if (tighter) save_soon(out);
  return kept;
}

// Its answer is shown when what it taught is written.
std::shared_ptr<Visitor> Gate::keep_back(Asker& asker, Mailbox& mailbox) {
  auto visitor = std::make_shared<Visitor>(Visitor{mailbox, &asker, shared_from_this()});
  record_.wait_for_it(visitor);
  return visitor;
}

// What the pacer learned goes where it is kept.
void Gate::note_pace(const Rules& rules, const PaceMemory& before, const Outcome& why,
                     Effects& out) {
  if (pace_.learned == before) return;
  state_.pace = pace_.learned;
  if (pace_changed(before, pace_.learned)) {
    out.pace = pace_change_sentence(rules, before, pace_.learned, why);
  }
}

// One wake-up at a time, the earliest; it finds the later ones.
void Gate::wake_at(Effects& out, Instant when) {
  if (when >= wake_) return;
  wake_ = when;
  out.wake = when;
}

void Gate::count_forward(const Journey& who, Effects& out) {
  if (pace_outdated(pace_.learned, pace_.flight.sent - written_up_to_)) save_soon(out);
  if (who.tries == 0) retry_tokens_ = std::min(retry_tokens_ + kRetryShare, kMostRetries);
}

// The client of one request is told that it does not go.
void Gate::count_refused() {
  ++state_.counts.refused;
  record_.touch();
}

bool Gate::take_retry() {
  if (retry_tokens_ < 1) return false;
  retry_tokens_ -= 1;
  return true;
}

void Gate::done(PaceTicket& ticket, Instant now, Effects& out) {
  const std::lock_guard guard(mutex_);
  pace_done(pace_, ticket);
  last_used_ = now;
  if (waiting() > 0) wake_at(out, now);
}

void Gate::note_transition(const HostState& before, Instant now, Effects& out) {
  const bool same_trip = state_.epoch == before.epoch;
  if (state_.phase == before.phase && same_trip && state_.cause == before.cause) return;
  if (waiting() > 0) wake_at(out, now);
  out.changed = state_;
  out.tripped = state_.phase == Phase::open && !same_trip;
  out.shut = before.phase == Phase::closed && state_.phase == Phase::open;
}

void Gate::save_soon(Effects& out) {
  state_.pace = pace_remembered(pace_);
  if (!record_.begin(state_)) return;
  written_up_to_ = pace_.flight.sent;
  out.save = state_;
}

std::optional<HostState> Gate::take_dirty() {
  const std::lock_guard guard(mutex_);
  if (record_.is_settled()) return std::nullopt;
  state_.pace = pace_remembered(pace_);
  if (!record_.begin_flush(state_)) return std::nullopt;
  written_up_to_ = pace_.flight.sent;
  return state_;
}

// What was given for a probe that does not go.
void Gate::take_back(Claim& claim) {
  pace_done(pace_, claim.pass.pace);
  if (allowances_ != nullptr)
    allowances_->give_back(key_, claim.visitor->journey, claim.pass.taken);
}

void Gate::saved(const Result<std::uint64_t>& version, const HostState* stored, bool keep_going,
                 Instant now, Effects& out) {
  const std::lock_guard guard(mutex_);
  if (record_.is_tightening() && waiting() > 0) wake_at(out, now);
  GateRecord::Due due = record_.end(version);
  const bool written = version && *version > 0;
  if (written) state_.version = *version;
  if (version && !written && stored != nullptr) {
    adopt(*stored, *rules_, now, out);
    for (Claim& claim : record_.lose(std::move(due))) {
      take_back(claim);
      enqueue(std::move(claim.visitor), true);
    }
    if (waiting() > 0) wake_at(out, now);
    due = {};
  }
  for (auto& visitor : due.told) out.words.push_back({.to = std::move(visitor), .durable = true});
  for (Claim& claim : due.claims) {
    if (written || keep_going) {
      count_forward(claim.visitor->journey, out);
    } else {
      std::erase_if(state_.leases,
                    [&](const ProbeLease& l) { return l.id == claim.pass.ticket.lease; });
      take_back(claim);
      count_refused();
      claim.pass = {.act = Decision::Act::refuse,
                    .by = By::store,
                    .why = version ? std::string() : version.error()};
    }
    out.words.push_back({.to = std::move(claim.visitor), .pass = std::move(claim.pass)});
  }
  if (record_.wants_write()) save_soon(out);
}

bool Gate::has_waiting() {
  const std::lock_guard guard(mutex_);
  return waiting() > 0;
}

bool Gate::is_idle(Instant now, Duration quiet) {
  const std::lock_guard guard(mutex_);
  return !queue_ && pace_.flight.in_flight == 0 && record_.is_settled() &&
         now - last_used_ >= quiet && unusual_.going_on().empty();
}

Gate::Glance Gate::glance_at(const HostState& state, const Rules& rules, Instant now) {
  Glance out;
  out.version = state.version;
  out.phase = phase_at(state, now);
  out.cause = state.cause;
  if (out.phase == Phase::open) out.until = state.until;
  if (state.level > 0 || state.antibot_level > 0) {
    const HostState quiet = decayed(rules, state, now);
    out.level = std::max(quiet.level, quiet.antibot_level);
  }
  out.delay = usual_delay(state.pace);
  out.counts = state.counts;
  return out;
}

Gate::Glance Gate::glance(const Rules& rules, Instant now) {
  const std::lock_guard guard(mutex_);
  Glance out = glance_at(state_, rules, now);
  out.held = waiting() + record_.claims();
  out.in_flight = pace_.flight.in_flight;
  out.policy = policy_;
  return out;
}

bool Gate::shut_by_operator(Instant now) {
  const std::lock_guard guard(mutex_);
  return state_.cause == Cause::operator_act && phase_at(state_, now) == Phase::open;
}

std::string Gate::pace(Instant now) {
  const std::lock_guard guard(mutex_);
  return rules_ != nullptr ? pace_text(now) : std::string();
}

Gate::View Gate::view() {
  const std::lock_guard guard(mutex_);
  View out;
  out.state = state_;
  out.held = waiting() + record_.claims();
  out.in_flight = pace_.flight.in_flight;
  out.policy = policy_;
  out.observed = rules_ != nullptr && rules_->mode == Mode::observe;
  return out;
}

}  // namespace sluice
