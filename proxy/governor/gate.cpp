#include "proxy/governor/gate.h"

#include <algorithm>
#include <utility>

#include "proxy/clock.h"

namespace sluice {
namespace {

constexpr double kRetryShare = 0.2;   // of the requests to a key
constexpr double kMostRetries = 100;  // saved up

// What two processes know about one key, put together: the later end of a cooldown holds.
HostState merged(HostState stored, const HostState& ours) {
  const std::uint64_t version = stored.version;
  const std::uint64_t epoch = std::max(stored.epoch, ours.epoch);
  if (ours.phase == Phase::open && ours.until > stored.until) stored = ours;
  stored.version = version;
  stored.epoch = epoch;
  return stored;
}

}  // namespace

bool Gate::is_current(std::uint64_t store_version) {
  const std::lock_guard guard(mutex_);
  return known_ && (seen_ == store_version || saving_);
}

bool Gate::is_known() {
  const std::lock_guard guard(mutex_);
  return known_;
}

void Gate::load(HostState stored, std::uint64_t store_version, const Rules& rules, Instant now,
                Effects& out) {
  const std::lock_guard guard(mutex_);
  seen_ = store_version;
  if (known_ && stored.version == state_.version) return;
  const HostState before = state_;
  const bool first = !std::exchange(known_, true);
  if (!first && stored.epoch == state_.epoch && stored.phase == state_.phase) {
    stored.consecutive = std::max(stored.consecutive, state_.consecutive);
  }
  state_ = std::move(stored);
  if (first) {
    pace_ = pace_restored(rules, state_.pace, now);
    return;
  }
  if (state_.epoch != before.epoch || state_.phase != before.phase ||
      state_.until != before.until) {
    wake_at(out, now);
  }
}

// What the breaker and then the pacer say now. Asking takes what it is given: a lease, a slot.
Gate::Pass Gate::pass(const Journey& who, double jitter, Instant now) {
  using Act = Decision::Act;
  const Rules& rules = *who.match.rules;
  std::optional<HostState> before;
  if (state_.phase != Phase::closed) before = state_;
  Step step = decide(rules, std::move(state_), now, {who.arrived});
  state_ = std::move(step.next);
  const bool watches = rules.mode == Mode::observe;
  const Act act = watches ? Act::forward : step.decision.act;
  Pass out{act, step.decision.until, step.decision.ticket};
  if (watches) out.ticket.epoch = state_.epoch;
  if (act == Act::hold || act == Act::refuse) return out;

  PaceStep pace = watches ? pace_forced(rules, std::move(pace_), now, jitter)
                          : pace_decide(rules, std::move(pace_), now, jitter);
  pace_ = std::move(pace.next);
  out.pace = pace.ticket;
  if (pace.go) {
    keep_limits(who, now, out);
    if (out.by_limit && before) state_ = std::move(*before);
    return out;
  }
  if (before) state_ = std::move(*before);  // the lease was not used
  const Instant patience = who.arrived + rules.hold.max_wait;
  const bool hopeless = now >= patience || (pace.at > patience && pace.at != Instant::max());
  return {hopeless ? Act::refuse : Act::hold, std::min(pace.at, hopeless ? pace.at : patience)};
}

// The windows of `limits` come last: what they give counts from now on.
void Gate::keep_limits(const Journey& who, Instant now, Pass& passed) {
  const Rules& rules = *who.match.rules;
  if (limits_ == nullptr || rules.limits.requests.empty() || rules.mode == Mode::observe) return;
  const auto answer = limits_->take(key_, rules.limits, clock_now());
  using Kind = RequestLimits::Answer::Kind;
  if (answer.kind == Kind::go) return;
  pace_ = pace_done(std::move(pace_), now, passed.pace);
  const Instant patience = who.arrived + rules.hold.max_wait;
  const bool soon = answer.kind == Kind::soon && now < patience;
  const bool waits = soon || (answer.kind == Kind::at && answer.at <= patience);
  passed = {.act = waits ? Decision::Act::hold : Decision::Act::refuse,
            .until = answer.kind == Kind::at ? answer.at : patience,
            .by_limit = true};
}

Gate::Asked Gate::ask(Journey& who, Asker& asker, Mailbox& mailbox, double jitter, Instant now,
                      Effects& out) {
  using Act = Decision::Act;
  const std::lock_guard guard(mutex_);
  last_used_ = now;
  const Rules& rules = *who.match.rules;
  if (rules_ != &rules) {
    rules_ = &rules;
    book_ = who.match.book;
    policy_ = who.match.policy->name;
  }
  const bool behind_others = waiting() > 0 && who.tries == 0 && rules.mode == Mode::enforce;
  Pass passed{.act = Act::hold};
  if (!behind_others) passed = pass(who, jitter, now);
  // Nobody is told of a cooldown that a crash could still undo.
  if (passed.act == Act::refuse && !is_durable())
    passed = {.act = Act::hold, .until = Instant::max()};
  if (passed.act == Act::forward) {
    count_forward(who);
    return {Asked::Kind::go, passed};
  }
  if (passed.act == Act::refuse) {
    dirty_ = true;
    return {Asked::Kind::refused, passed};
  }
  const bool first = who.tries > 0;
  if (passed.act == Act::hold && !first && waiting() >= rules.hold.max_queue) {
    return {Asked::Kind::queue_full, passed};
  }
  auto visitor =
      std::make_shared<Visitor>(Visitor{mailbox, &asker, shared_from_this(), std::move(who)});
  if (passed.act == Act::probe) {
    claims_next_.push_back({visitor, passed});
    save_soon(out);
  } else {
    enqueue(visitor, first);
    wake_at(out, behind_others ? *queue_->turns.next_deadline() : passed.until);
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
  queue_->turns.push({.id = visitor->id,
                      .job = std::hash<std::string>{}(who.job),
                      .client = who.client,
                      .connection = who.connection,
                      .deadline = who.arrived + who.match.rules->hold.max_wait},
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

// Lets through whoever may go now, in order, and says when to look again.
void Gate::pump(double jitter, Instant now, Effects& out) {
  const std::lock_guard guard(mutex_);
  if (wake_ <= now) wake_ = Instant::max();
  using Act = Decision::Act;
  while (waiting() > 0) {
    const std::uint64_t id = queue_->turns.front()->id;
    const std::shared_ptr<Visitor> visitor = queue_->visitors.at(id);
    const Pass passed = pass(visitor->journey, jitter, now);
    if (passed.act == Act::hold) {
      wake_at(out, std::min(passed.until, *queue_->turns.next_deadline()));
      break;
    }
    if (passed.act == Act::refuse && !is_durable()) return;
    queue_->turns.pop();  // takes its turn, unlike one that is removed
    dequeue(id);
    if (passed.act == Act::probe) {
      claims_next_.push_back({visitor, passed});
      save_soon(out);
      continue;
    }
    if (passed.act == Act::forward) count_forward(visitor->journey);
    out.words.push_back({.to = visitor, .pass = passed});
  }
  if (waiting() == 0 || !is_durable()) return;
  for (const Waiter& late : queue_->turns.expire(now)) {
    auto visitor = std::move(queue_->visitors.at(late.id));
    queue_->visitors.erase(late.id);
    out.words.push_back(
        {.to = std::move(visitor), .pass = {.act = Act::refuse, .until = state_.until}});
  }
  if (queue_->visitors.empty()) queue_.reset();
}

Gate::Told Gate::tell(const Permit::Body& permit, const Outcome& outcome, bool safe, double jitter,
                      Instant now, Asker* asker, Mailbox* mailbox, Effects& out) {
  const std::lock_guard guard(mutex_);
  const Journey& who = permit.journey;
  const Rules& rules = *who.match.rules;
  dirty_ = true;
  const bool good = outcome.kind == OutcomeKind::success || outcome.kind == OutcomeKind::neutral;
  const PaceMemory learned = pace_.learned;
  pace_ = pace_observe(rules, std::move(pace_), now, permit.pace, outcome);
  bool tighter = false;
  if (good && state_.phase == Phase::closed) {
    state_ = observe(rules, std::move(state_), now, outcome, jitter);
  } else {
    const HostState before = state_;
    state_ = observe(rules, std::move(state_), now, outcome, jitter);
    if (before.phase != Phase::closed && state_.phase == Phase::closed) {
      pace_ = pace_reopened(rules, std::move(pace_), now, before.cause);
    }
    note_transition(before, now, out);
    tighter = tightens(before, state_);
    if (state_.phase != before.phase && !tighter) save_soon(out);
  }
  note_pace(rules, learned, out);
  if (tighter || pace_tightens(learned, pace_.learned)) tighter_next_ = true;
  Told told;
  // Also a refusal that changed nothing waits: it tells of the same cooldown.
  if (asker != nullptr && !good && !is_durable()) {
    told.wait = std::make_shared<Visitor>(Visitor{*mailbox, asker, shared_from_this()});
    (tighter_next_ ? told_next_ : told_now_).push_back(told.wait);
  }
  if (tighter_next_) save_soon(out);
  const bool open = phase_at(state_, now) == Phase::open;
  const Instant again = open ? state_.until : now;
  told.retry = !good && safe && rules.retry.on.contains(outcome.kind) &&
               who.tries < rules.retry.max && !outcome.no_credit &&
               outcome.signal.should_retry.value_or(true) &&
               again <= who.arrived + rules.hold.max_wait && take_retry();
  if (waiting() > 0) wake_at(out, now);
  return told;
}

// What the pacer learned goes where it is kept.
void Gate::note_pace(const Rules& rules, const PaceMemory& before, Effects& out) {
  if (pace_.learned == before) return;
  state_.pace = pace_.learned;
  if (pace_changed(before, pace_.learned)) out.pace = pace_sentence(rules, pace_, last_used_);
}

// One wake-up at a time, the earliest; it finds the later ones.
void Gate::wake_at(Effects& out, Instant when) {
  if (when >= wake_) return;
  wake_ = when;
  out.wake = when;
}

void Gate::count_forward(const Journey& who) {
  if (who.tries == 0) retry_tokens_ = std::min(retry_tokens_ + kRetryShare, kMostRetries);
}

bool Gate::take_retry() {
  if (retry_tokens_ < 1) return false;
  retry_tokens_ -= 1;
  return true;
}

void Gate::done(const PaceTicket& ticket, Instant now, Effects& out) {
  const std::lock_guard guard(mutex_);
  pace_ = pace_done(std::move(pace_), now, ticket);
  last_used_ = now;
  if (waiting() > 0) wake_at(out, now);
}

void Gate::note_transition(const HostState& before, Instant now, Effects& out) {
  if (state_.phase == before.phase && state_.epoch == before.epoch) return;
  if (waiting() > 0) wake_at(out, now);
  out.changed = state_;
}

void Gate::save_soon(Effects& out) {
  if (saving_) {
    save_again_ = true;
    return;
  }
  saving_ = true;
  dirty_ = false;
  tighter_now_ = std::exchange(tighter_next_, false);
  told_now_ = std::exchange(told_next_, {});
  claims_now_ = std::exchange(claims_next_, {});
  out.save = state_;
}

void Gate::saved(const Result<std::uint64_t>& version, const HostState* stored, bool keep_going,
                 Instant now, Effects& out) {
  const std::lock_guard guard(mutex_);
  saving_ = false;
  const bool was_tighter = std::exchange(tighter_now_, false);
  if (was_tighter && waiting() > 0) wake_at(out, now);
  if (!version) dirty_ = true;
  const bool lost = version && *version == 0;
  if (version && !lost) state_.version = *version;
  if (lost && stored != nullptr) {
    // Another process was first. Its word and ours are put together and written again; the probes
    // that were taken on the old state were not.
    state_ = merged(*stored, state_);
    for (Claim& claim : claims_now_) {
      pace_ = pace_done(std::move(pace_), now, claim.pass.pace);
      enqueue(std::move(claim.visitor), true);
    }
    claims_now_.clear();
    if (waiting() > 0) wake_at(out, now);
    told_next_.insert(told_next_.end(), told_now_.begin(), told_now_.end());
    told_now_.clear();
    tighter_next_ |= was_tighter;
    if (tighter_next_ || !told_next_.empty() || !claims_next_.empty()) return save_soon(out);
  }
  for (auto& visitor : told_now_) out.words.push_back({.to = std::move(visitor), .durable = true});
  for (Claim& claim : claims_now_) {
    const bool go = version || keep_going;
    if (go) count_forward(claim.visitor->journey);
    if (!go) pace_ = pace_done(std::move(pace_), now, claim.pass.pace);
    out.words.push_back({.to = std::move(claim.visitor), .pass = claim.pass, .store_failed = !go});
  }
  told_now_.clear();
  claims_now_.clear();
  if (std::exchange(save_again_, false)) save_soon(out);
}

void Gate::set_state(HostState next, Instant now, Effects& out) {
  const std::lock_guard guard(mutex_);
  const HostState before = std::exchange(state_, std::move(next));
  note_transition(before, now, out);
  wake_at(out, now);
  save_soon(out);
}

std::optional<HostState> Gate::take_dirty() {
  const std::lock_guard guard(mutex_);
  if (!dirty_ || saving_ || !known_) return std::nullopt;
  saving_ = true;
  dirty_ = false;
  return state_;
}

bool Gate::is_idle(Instant now, Duration quiet) {
  const std::lock_guard guard(mutex_);
  return !queue_ && pace_.flight.in_flight == 0 && !saving_ && !dirty_ && now - last_used_ >= quiet;
}

Gate::View Gate::view(Instant now) {
  const std::lock_guard guard(mutex_);
  View out;
  out.state = state_;
  out.held = waiting() + claims_now_.size() + claims_next_.size();
  out.in_flight = pace_.flight.in_flight;
  out.policy = policy_;
  if (rules_ != nullptr) {
    out.pace = pace_sentence(*rules_, pace_, now);
    out.observed = rules_->mode == Mode::observe;
  }
  return out;
}

}  // namespace sluice
