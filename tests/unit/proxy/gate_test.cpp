// The gate of one key over a real store, with its time and its writes in the test's hands: what it
// keeps when another process writes first, and who goes when.
#include "proxy/governor/gate.h"

#include <doctest/doctest.h>

#include <deque>
#include <utility>

#include "store/hosts.h"
#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

using Act = Decision::Act;
using Kind = Gate::Asked::Kind;

constexpr std::string_view kKey = "api.test";
constexpr Duration kLongest = 48h;

ClockPair at(Duration since) { return {Instant{100h} + since, kNoon + since, 7}; }

class Inbox : public Mailbox {
 public:
  void post(std::function<void()>) override {}
};

class Client : public Asker {
 public:
  void on_admission(Admission) override {}
  void on_durable() override {}
};

struct Sent {
  Journey journey;
  Gate::Pass pass;
};

// One process: its gate of the key, doing what the governor does with it, on time of its own.
class Process {
 public:
  Process(Store& store, const Policy& policy) : store_(store) {
    book_ =
        std::make_shared<const Rulebook>(PolicyLoad{std::make_shared<PolicySet>(policy), {}, {}});
    gate_ = std::make_shared<Gate>(std::string(kKey), nullptr);
  }

  Gate::Asked ask(Duration since) {
    Gate::Effects effects;
    refresh(since, effects);
    Journey who;
    who.match = book_->match(kKey, 80, "/");
    who.match.book = book_;
    who.arrived = at(since).mono;
    auto asked = gate_->ask(who, client_, inbox_, 0.0, at(since).mono, effects);
    if (asked.kind == Kind::go) sent_.push_back({std::move(who), asked.pass});
    carry_out(std::move(effects), since);
    return asked;
  }
  bool goes(Duration since) { return ask(since).kind == Kind::go; }

  // Answers the oldest request that went.
  Gate::Told answer(Duration since, Outcome outcome) {
    REQUIRE_FALSE(sent_.empty());
    const Sent sent = std::move(sent_.front());
    sent_.pop_front();
    return tell(since, sent, std::move(outcome));
  }
  // The same request twice: a head, and what its body adds.
  std::pair<Gate::Told, Gate::Told> answer(Duration since, Outcome head, Outcome body) {
    REQUIRE_FALSE(sent_.empty());
    const Sent sent = std::move(sent_.front());
    sent_.pop_front();
    auto told = tell(since, sent, std::move(head));
    body.amends = true;
    return {std::move(told), tell(since, sent, std::move(body))};
  }

  // The same request's head says that nothing is left. True: the answer is kept back.
  bool exhausted(Duration since, const Outcome& outcome) {
    Gate::Effects effects;
    const bool kept = gate_->tell_exhausted(permit(sent_.front()), outcome, at(since).mono, client_,
                                            inbox_, effects) != nullptr;
    carry_out(std::move(effects), since);
    return kept;
  }

  // The flush of every few seconds, without looking at the store first.
  void flush(Duration since) {
    if (const auto state = gate_->take_dirty()) save(*state, since);
  }
  void pump(Duration since) {
    Gate::Effects effects;
    refresh(since, effects);
    gate_->pump(0.0, at(since).mono, effects);
    carry_out(std::move(effects), since);
  }
  // Writes wait until they are let go.
  void hold_writes() { holds_ = true; }
  void let_writes_go(Duration since) {
    holds_ = false;
    while (!writes_.empty()) {
      const HostState state = std::move(writes_.front());
      writes_.pop_front();
      save(state, since);
    }
  }

  Gate& gate() { return *gate_; }
  HostState state() { return gate_->view().state; }
  std::vector<Gate::Effects::Word> words;  // in the order they were given

 private:
  Gate::Told tell(Duration since, const Sent& sent, Outcome outcome) {
    outcome.ticket = sent.pass.ticket;
    outcome.sent = sent.pass.pace.sent;
    Permit::Body body = permit(sent);
    Gate::Effects effects;
    auto told = gate_->tell(body, outcome, true, 0.0, at(since).mono, &client_, &inbox_, effects);
    gate_->done(body.pace, at(since).mono, effects);
    carry_out(std::move(effects), since);
    return told;
  }
  void refresh(Duration since, Gate::Effects& effects) {
    // Always: what one process writes is not news to a store in memory, and here there are two.
    auto loaded = load_host(store_, kKey, at(since), kLongest);
    REQUIRE(loaded);
    gate_->load(std::move(loaded->state), loaded->store_version, rules(), at(since).mono, effects);
  }
  // Its body wants a governor, which a gate never touches.
  Permit::Body permit(const Sent& sent) {
    return {reinterpret_cast<Governor&>(nobody_), gate_, sent.journey, sent.pass.ticket,
            sent.pass.pace};
  }
  const Rules& rules() const { return book_->load().set->fallback().rules; }

  void carry_out(Gate::Effects effects, Duration since) {
    if (effects.save) {
      if (holds_) {
        writes_.push_back(std::move(*effects.save));
      } else {
        save(*effects.save, since);
      }
    }
    for (auto& word : effects.words) {
      if (word.pass.act == Act::probe || (word.pass.act == Act::forward && !word.durable))
        sent_.push_back({word.to->journey, word.pass});
      words.push_back(std::move(word));
    }
  }

  void save(const HostState& state, Duration since) {
    const auto version = wait_for(
        [&](Completion done) { save_host(store_, kKey, state, at(since), std::move(done)); });
    std::optional<HostState> stored;
    if (version && *version == 0) stored = load_host(store_, kKey, at(since), kLongest)->state;
    Gate::Effects effects;
    gate_->saved(version, stored ? &*stored : nullptr, false, at(since).mono, effects);
    carry_out(std::move(effects), since);
  }

  Store& store_;
  std::shared_ptr<const Rulebook> book_;
  std::shared_ptr<Gate> gate_;
  alignas(Governor*) char nobody_ = 0;
  Client client_;
  Inbox inbox_;
  std::deque<Sent> sent_;
  bool holds_ = false;
  std::deque<HostState> writes_;
};

HostState stored(Store& store, Duration since) {
  const auto loaded = load_host(store, kKey, at(since), kLongest);
  REQUIRE(loaded);
  return loaded->state;
}

void operate(Store& store, Duration since, const std::function<HostState(HostState)>& act) {
  const auto done = wait_for([&](Completion completion) {
    change_host(store, kKey, at(since), kLongest, act, std::move(completion));
  });
  REQUIRE(done);
}

void close(Store& store, Duration since) {
  operate(store, since,
          [&](HostState state) { return operator_close(std::move(state), at(since).mono); });
}

Policy impatient() {
  Policy policy;
  policy.rules.hold.max_wait = 0s;
  policy.rules.pace.adapt = Adapt::off;
  return policy;
}

Outcome refusal(std::optional<Duration> wait = std::nullopt) {
  Outcome out;
  out.kind = OutcomeKind::rate_limited;
  out.status = 429;
  out.wait = wait;
  return out;
}

Outcome block() {
  Outcome out;
  out.kind = OutcomeKind::anti_bot;
  out.status = 429;
  return out;
}

Outcome success() {
  Outcome out;
  out.kind = OutcomeKind::success;
  out.status = 200;
  return out;
}

Outcome none_left(Duration reset) {
  Outcome out = success();
  out.signal.quota_count = 1;
  out.signal.quotas[0] = {.limit = 60, .remaining = 0, .reset = reset, .window = {}};
  return out;
}

Policy learning() {
  Policy policy = impatient();
  policy.rules.pace.adapt = Adapt::learned;
  return policy;
}

}  // namespace

TEST_CASE("gate: that nothing is left is written down before a client reads it") {
  MemoryStore store;
  Process process(store, learning());
  REQUIRE(process.goes(0s));
  process.hold_writes();
  CHECK(process.exhausted(1s, none_left(5min)));
  process.answer(2s, none_left(5min));  // its body was no block
  CHECK(process.words.empty());
  process.let_writes_go(2s);
  REQUIRE(process.words.size() == 1);
  CHECK(process.words[0].durable);
  CHECK(stored(store, 2s).pace.hold == at(1s).mono + 5min);
  Process next(store, learning());
  CHECK(next.ask(3s).pass.until == at(1s).mono + 5min);
  CHECK(next.goes(1s + 5min));
  CHECK_FALSE(next.exhausted(2s + 5min, none_left(1s)));  // over before it could be written
}

TEST_CASE("gate: a flush does not undo an operator's word") {
  MemoryStore store;
  Process process(store, impatient());
  REQUIRE(process.goes(0s));
  process.answer(0s, refusal(10min));
  REQUIRE(process.ask(1s).kind == Kind::refused);  // to be written with the next flush

  SUBCASE("close") {
    close(store, 2s);
    process.flush(5s);
    CHECK(stored(store, 5s).phase == Phase::closed);
    CHECK(process.goes(6s));
    process.flush(10s);
    CHECK(stored(store, 10s).phase == Phase::closed);
    CHECK(stored(store, 10s).counts.refused == 1);  // and what was counted is not lost
  }
  SUBCASE("open for a shorter time") {
    operate(store, 2s,
            [&](HostState state) { return operator_open(std::move(state), at(2s).mono, 2s, ""); });
    process.flush(5s);
    process.flush(10s);
    CHECK(stored(store, 10s).until == at(4s).mono);
    CHECK(process.ask(11s).pass.act == Act::probe);
  }
  SUBCASE("close, while the flush is on its way") {
    const auto dirty = process.gate().take_dirty();
    REQUIRE(dirty);
    close(store, 2s);
    const auto version =
        wait_for([&](Completion done) { save_host(store, kKey, *dirty, at(3s), std::move(done)); });
    REQUIRE(version);
    CHECK(*version == 0);
    const HostState now = stored(store, 3s);
    Gate::Effects effects;
    process.gate().saved(version, &now, false, at(3s).mono, effects);
    CHECK(process.state().phase == Phase::closed);
    process.flush(5s);
    CHECK(stored(store, 5s).phase == Phase::closed);
  }
}

TEST_CASE("gate: shut by another process while a write is under way, it lets nobody through") {
  MemoryStore store;
  Process process(store, impatient());
  REQUIRE(process.goes(0s));
  process.answer(0s, success());
  const auto dirty = process.gate().take_dirty();
  REQUIRE(dirty);
  CHECK_FALSE(process.gate().is_current(store.version() + 1));
  const auto write = [&] {
    const auto version =
        wait_for([&](Completion done) { save_host(store, kKey, *dirty, at(2s), std::move(done)); });
    REQUIRE(version);
    return *version;
  };
  const auto open = [&] {
    operate(store, 1s, [&](HostState state) {
      return operator_open(std::move(state), at(1s).mono, 5min, "");
    });
  };
  const auto saved = [&](std::uint64_t version) {
    const HostState now = stored(store, 3s);
    Gate::Effects effects;
    process.gate().saved(version, &now, false, at(3s).mono, effects);
  };
  SUBCASE("before ours") {
    open();
    CHECK(process.ask(2s).kind == Kind::refused);
    const std::uint64_t version = write();
    CHECK(version == 0);
    saved(version);
  }
  SUBCASE("after ours, which is not told of yet") {
    const std::uint64_t version = write();
    open();
    CHECK(process.ask(2s).kind == Kind::refused);
    saved(version);
  }
  CHECK(process.ask(4s).kind == Kind::refused);
  process.flush(5s);
  CHECK(stored(store, 6s).until == at(1s).mono + 5min);
  CHECK(stored(store, 6s).counts.success == 1);
  CHECK(stored(store, 6s).counts.refused == 2);
  close(store, 7s);
  CHECK(process.goes(8s));
}

TEST_CASE("gate: cleared by an operator, it is not held back by its pace either") {
  MemoryStore store;
  Process process(store, learning());
  REQUIRE(process.goes(0s));
  process.answer(0s, refusal(10min));
  REQUIRE(process.ask(1s).kind == Kind::refused);
  close(store, 2s);
  CHECK(process.goes(3s));
}

TEST_CASE("gate: cleared by an operator, it does not wait for what headers told") {
  MemoryStore store;
  Process process(store, learning());
  REQUIRE(process.goes(0s));
  process.answer(0s, none_left(5min));
  REQUIRE(process.ask(1s).kind == Kind::refused);
  close(store, 2s);
  CHECK(process.goes(3s));
  process.flush(8s);
  CHECK(stored(store, 8s).pace.hold == Instant{});
}

TEST_CASE("gate: a trip that met somebody else's write is written again before it is shown") {
  MemoryStore store;
  Process one(store, impatient()), other(store, impatient());
  REQUIRE(one.goes(0s));
  REQUIRE(one.goes(0s));
  REQUIRE(other.goes(0s));
  one.hold_writes();
  const auto told = one.answer(1s, refusal(10min));
  CHECK(told.wait);
  other.answer(1s, refusal(5min));
  CHECK(stored(store, 1s).until == at(1s).mono + 5min);
  CHECK(one.words.empty());
  one.let_writes_go(1s);
  CHECK(stored(store, 1s).until == at(1s).mono + 10min);
  REQUIRE(one.words.size() == 1);
  CHECK(one.words[0].durable);
  CHECK(other.ask(2s).pass.until == at(1s).mono + 10min);
}

TEST_CASE("gate: what a body adds to its head is shown when it is durable, and counted once") {
  MemoryStore store;
  Process process(store, impatient());
  REQUIRE(process.goes(0s));
  process.hold_writes();
  const auto [head, body] = process.answer(0s, refusal(), block());
  CHECK_FALSE(head.wait);  // nothing was shut by it
  CHECK(body.wait);
  CHECK_FALSE(body.retry);
  CHECK(process.words.empty());
  process.let_writes_go(0s);
  REQUIRE(process.words.size() == 1);
  CHECK(process.words[0].durable);
  CHECK(stored(store, 0s).cause == Cause::anti_bot);
  CHECK(stored(store, 0s).counts == Counts{.rate_limited = 1, .trips = 1});
}

TEST_CASE("gate: one probe for two processes, also when both ask at once") {
  MemoryStore store;
  Process one(store, impatient()), other(store, impatient());
  REQUIRE(one.goes(0s));
  one.answer(0s, refusal(1s));
  one.words.clear();
  REQUIRE(other.ask(0s).kind == Kind::refused);
  one.hold_writes();
  CHECK(one.ask(2s).pass.act == Act::probe);
  CHECK(one.ask(2s).pass.act != Act::probe);
  CHECK(other.ask(2s).pass.act == Act::probe);
  REQUIRE(other.words.size() == 1);
  CHECK(other.words[0].pass.act == Act::probe);
  one.let_writes_go(2s);
  one.pump(2s);
  REQUIRE(one.words.size() == 1);
  CHECK(one.words[0].pass.act == Act::refuse);
  CHECK(stored(store, 2s).leases.size() == 1);
}

TEST_CASE("gate: what another process learned about the pace counts at the next decision") {
  MemoryStore store;
  Policy policy = impatient();
  policy.rules.pace.adapt = Adapt::linear;
  policy.rules.pace.step = 5s;
  Process one(store, policy), other(store, policy);
  REQUIRE(other.goes(0s));
  other.answer(0s, success());
  REQUIRE(one.goes(1s));
  one.answer(1s, refusal());
  CHECK(other.ask(2s).kind == Kind::refused);
  CHECK(other.goes(7s));
  other.answer(7s, success());
  other.flush(8s);
  CHECK(stored(store, 8s).pace.delay == 5s);
}

TEST_CASE("gate: evidence of two processes adds up") {
  MemoryStore store;
  Policy policy = impatient();
  policy.rules.breaker.consecutive = 100;
  Process one(store, policy), other(store, policy);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(one.goes(i * 1min));
    one.answer(i * 1min, refusal());
  }
  one.flush(2min);
  REQUIRE(other.goes(3min));
  other.answer(3min, refusal());
  CHECK(other.ask(3min + 10s).kind == Kind::refused);  // three in ten minutes
}

TEST_CASE("gate: a level is shown as it is after the quiet since") {
  MemoryStore store;
  const Policy policy = impatient();
  Process process(store, policy);
  REQUIRE(process.goes(0s));
  process.answer(0s, refusal(1s));
  CHECK(process.gate().glance(policy.rules, at(2s).mono).level == 1);
  CHECK(process.gate().glance(policy.rules, at(49h).mono).level == 0);
}

TEST_CASE("gate: a refused request is counted once, whatever refuses it") {
  MemoryStore store;
  Policy policy = learning();
  policy.rules.pace.max_concurrency = 1;
  const auto refused = [](Process& process) { return process.state().counts.refused; };

  SUBCASE("the breaker") {
    Process process(store, policy);
    REQUIRE(process.goes(0s));
    process.answer(0s, refusal(10min));
    CHECK(process.ask(1s).kind == Kind::refused);
    CHECK(refused(process) == 1);
  }
  SUBCASE("the pace") {
    Process process(store, policy);
    REQUIRE(process.goes(0s));
    CHECK(process.ask(1s).kind == Kind::refused);
    CHECK(refused(process) == 1);
    process.flush(2s);
    CHECK(stored(store, 2s).counts.refused == 1);
  }
  SUBCASE("the end of a wait, and of the room to wait in") {
    policy.rules.hold.max_wait = 10s;
    policy.rules.hold.max_queue = 1;
    Process process(store, policy);
    REQUIRE(process.goes(0s));
    CHECK(process.ask(1s).kind == Kind::held);
    CHECK(process.ask(1s).kind == Kind::queue_full);
    CHECK(refused(process) == 1);
    process.pump(5s);
    CHECK(refused(process) == 1);
    process.pump(12s);
    CHECK(refused(process) == 2);
  }
  SUBCASE("nothing: the policy only observes") {
    policy.rules.mode = Mode::observe;
    Process process(store, policy);
    REQUIRE(process.goes(0s));
    process.answer(0s, refusal(10min));
    CHECK(process.goes(1s));
    CHECK(refused(process) == 0);
  }
}

TEST_CASE("gate: a policy that only observes sends nothing again") {
  MemoryStore store;
  for (const Mode mode : {Mode::enforce, Mode::observe}) {
    Policy policy = impatient();
    policy.rules.mode = mode;
    Process process(store, policy);
    REQUIRE(process.goes(0s));
    Outcome failure;
    failure.kind = OutcomeKind::server_error;
    failure.status = 500;
    CHECK(process.answer(0s, failure).retry == (mode == Mode::enforce));
  }
}

TEST_CASE("gate: what could not go again in time is not sent again: the client gets the answer") {
  for (const Duration step : {1s, 30s}) {
    MemoryStore store;
    Policy policy;
    policy.rules.hold.max_wait = 5s;
    policy.rules.pace.adapt = Adapt::linear;
    policy.rules.pace.step = step;
    Process process(store, policy);
    REQUIRE(process.goes(0s));
    CHECK(process.answer(0s, refusal()).retry == (step == 1s));
  }
}

TEST_CASE("gate: a read that was overtaken by our own write does not undo it") {
  MemoryStore store;
  Process process(store, impatient());
  REQUIRE(process.goes(0s));
  const auto old = load_host(store, kKey, at(0s), kLongest);
  REQUIRE(old);
  process.answer(0s, refusal(10min));
  Gate::Effects effects;
  const Policy policy = impatient();
  process.gate().load(old->state, old->store_version, policy.rules, at(1s).mono, effects);
  CHECK(process.ask(1s).kind == Kind::refused);
}
