// The breaker under random sequences: what must hold whatever happens, in whatever order.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "policy/breaker.h"

using namespace sluice;

namespace {

using Act = Decision::Act;

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    rules_.breaker.consecutive = 1 + below(5);
    rules_.breaker.window.failures = 1 + below(4);
    rules_.breaker.trial_calls = 1 + below(3);
    rules_.breaker.successes_to_close = 1 + below(3);
    rules_.breaker.cooldown = {2s, 5s, 20s};
    rules_.breaker.antibot_cooldown = {30s, 90s};
    rules_.breaker.retry_after_cap = 25s;
    rules_.breaker.decay = 60s;
    rules_.breaker.probe_timeout = 3s;
    rules_.hold.max_wait = 1s * static_cast<int>(below(4));
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      now_ += Duration(1ms) * static_cast<int>(below(3000));
      if (below(2) == 0) {
        ask();
      } else {
        answer();
      }
      check_state();
    }
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  void ask() {
    const HostState before = state_;
    auto step = decide(rules_, state_, now_, {.arrived = now_});
    state_ = step.next;
    const Decision& decision = step.decision;
    switch (decision.act) {
      case Act::forward: CHECK(before.phase == Phase::closed); break;
      case Act::probe:
        CHECK(before.phase != Phase::closed);
        CHECK(now_ >= before.until);  // never inside a cooldown
        CHECK(state_.leases.size() <= rules_.breaker.trial_calls);
        CHECK(decision.ticket.lease > before.last_lease);
        break;
      case Act::hold:
        CHECK(decision.until > now_);
        CHECK(decision.until <= now_ + rules_.hold.max_wait);
        break;
      case Act::refuse: CHECK(decision.until > now_); break;
    }
    if (decision.act == Act::forward || decision.act == Act::probe)
      sent_.push_back(decision.ticket);
    CHECK(step.next.epoch == before.epoch);  // asking is not a trip
    CHECK(step.next.until == before.until);
  }

  void answer() {
    if (sent_.empty()) return;
    const auto which = below(static_cast<std::uint32_t>(sent_.size()));
    Outcome outcome{
        .kind = static_cast<OutcomeKind>(below(7)), .status = 429, .ticket = sent_[which]};
    sent_.erase(sent_.begin() + which);
    if (below(8) == 0) return;  // the owner died: nobody will ever answer
    if (below(3) == 0) outcome.wait = 1s * static_cast<int>(below(60));
    outcome.no_credit = outcome.kind == OutcomeKind::rate_limited && below(10) == 0;
    outcome.amends = outcome.kind == OutcomeKind::anti_bot && below(2) == 0;
    const HostState before = state_;
    const double jitter = below(1000) / 1000.0;
    state_ = observe(rules_, before, now_, outcome, jitter);

    CHECK(state_.epoch >= before.epoch);
    CHECK(state_.epoch <= before.epoch + 1);
    if (state_.phase == Phase::open) CHECK(state_.until >= before.until);  // never shortened
    const bool late = outcome.ticket.epoch != before.epoch;
    if (late) CHECK(state_.level == before.level);
    if (before.phase != Phase::closed && state_.phase == Phase::closed) {
      CHECK_FALSE(late);
      CHECK(outcome.ticket.lease != 0);
    }
    if (outcome.kind == OutcomeKind::local) {
      CHECK(state_.phase == before.phase);
      CHECK(state_.until == before.until);
    }
    CHECK(observe(rules_, before, now_, outcome, jitter) == state_);  // nothing but its arguments
  }

  void check_state() {
    if (state_.phase == Phase::open) CHECK(state_.until - now_ <= longest_cooldown(rules_));
    CHECK(state_.level <= rules_.breaker.cooldown.size());
    CHECK(state_.antibot_level <= rules_.breaker.antibot_cooldown.size());
    CHECK(state_.window.size() <= HostState::max_window);
    CHECK(std::is_sorted(state_.window.begin(), state_.window.end()));
    CHECK((state_.phase == Phase::closed) == (state_.cause == Cause::none));
    if (state_.phase != Phase::half_open) CHECK(state_.leases.empty());
  }

  std::mt19937 random_;
  Rules rules_;
  HostState state_;
  Instant now_{1000h};
  std::vector<Ticket> sent_;
};

}  // namespace

TEST_CASE("property: cooldowns are kept, bounded and never shortened; epochs only grow") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    World(seed).run(300);
  }
}

TEST_CASE("property: whatever happened, it closes again when the origin is well") {
  std::mt19937 random(3);
  const Rules rules;
  for (int round = 0; round < 200; ++round) {
    HostState state;
    Instant now{1000h};
    for (int i = 0; i < 50; ++i) {
      now += 1min * static_cast<int>(random() % 100);
      auto step = decide(rules, state, now, {.arrived = now});
      state = step.next;
      const Outcome outcome{.kind = static_cast<OutcomeKind>(random() % 7),
                            .ticket = step.decision.ticket};
      if (random() % 4 != 0) state = observe(rules, state, now, outcome, 0.5);
    }
    now += longest_cooldown(rules);
    const auto step = decide(rules, state, now, {.arrived = now});
    REQUIRE((step.decision.act == Act::probe || step.decision.act == Act::forward));
    state = observe(rules, step.next, now,
                    {.kind = OutcomeKind::success, .ticket = step.decision.ticket}, 0.5);
    CHECK(state.phase == Phase::closed);
  }
}

TEST_CASE("property: 2 % random errors in 10,000 requests do not open it") {
  std::mt19937 random(11);
  const Rules rules;
  HostState state;
  Instant now{1000h};
  for (int i = 0; i < 10'000; ++i) {
    now += 100ms;
    const bool bad = random() % 50 == 0;
    auto step = decide(rules, std::move(state), now, {.arrived = now});
    REQUIRE(step.decision.act == Act::forward);
    state = observe(rules, std::move(step.next), now,
                    {.kind = bad ? OutcomeKind::server_error : OutcomeKind::success}, 0.5);
  }
  CHECK(state.counts.trips == 0);
}
