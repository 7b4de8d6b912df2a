#include "policy/breaker.h"

#include <algorithm>

#include "policy/units.h"

namespace sluice {
namespace {

// A probe's owner reports its silence as a failure after `probe_timeout`. Its lease runs a little
// longer, so that only an owner who is gone loses it.
constexpr Duration lease_grace = 1s;

void count(Counts& counts, const Outcome& outcome) {
  counts.junk += outcome.signal.junk;
  switch (outcome.kind) {
    case OutcomeKind::success: ++counts.success; break;
    case OutcomeKind::neutral: ++counts.neutral; break;
    case OutcomeKind::rate_limited: ++counts.rate_limited; break;
    case OutcomeKind::anti_bot: ++counts.anti_bot; break;
    case OutcomeKind::server_error: ++counts.server_error; break;
    case OutcomeKind::network: ++counts.network; break;
    case OutcomeKind::local: ++counts.local; break;
  }
}

bool is_failure(const Rules& rules, OutcomeKind kind) {
  return kind != OutcomeKind::success && kind != OutcomeKind::neutral &&
         kind != OutcomeKind::local && rules.classify.failures.contains(kind);
}

// Sent before the last trip, or in spite of it (mode "observe"): says nothing about how the key is
// since then.
bool is_late(const HostState& state, const Ticket& ticket) {
  return ticket.epoch != state.epoch || (state.phase != Phase::closed && ticket.lease == 0);
}

bool names_time(const Outcome& outcome) {
  return outcome.kind == OutcomeKind::rate_limited && outcome.wait && !outcome.no_credit;
}

Duration capped(const Rules& rules, Duration wait) {
  return std::min(wait, rules.breaker.retry_after_cap);
}

Duration rung(const std::vector<Duration>& ladder, std::uint32_t level) {
  if (ladder.empty() || level == 0) return 1min;
  return ladder[std::min<std::size_t>(level, ladder.size()) - 1];
}

// A level above the last rung would only take longer to decay.
void climb(std::uint32_t& level, const std::vector<Duration>& ladder) {
  if (level < ladder.size()) ++level;
}

Duration lengthened(const Rules& rules, Duration cooldown, double jitter) {
  const double share = std::clamp(rules.breaker.jitter, 0.0, 1.0) * std::clamp(jitter, 0.0, 1.0);
  return cooldown +
         Duration(static_cast<Duration::rep>(static_cast<double>(cooldown.count()) * share));
}

// How long an outcome shuts the key, by the levels it is at.
Duration cooldown(const Rules& rules, const HostState& state, const Outcome& outcome,
                  double jitter) {
  if (names_time(outcome)) return capped(rules, *outcome.wait);
  const BreakerRules& breaker = rules.breaker;
  const Duration ours = outcome.kind == OutcomeKind::anti_bot
                            ? rung(breaker.antibot_cooldown, state.antibot_level)
                        : outcome.no_credit ? rung(breaker.cooldown, ~0u)
                                            : rung(breaker.cooldown, state.level);
  return std::max(lengthened(rules, ours, jitter),
                  capped(rules, outcome.wait.value_or(Duration(0))));
}

// A new deadline never shortens the one that stands.
void shut_for(HostState& state, Instant now, Duration length) {
  state.until = std::max(state.until, now + length);
}

void remember(HostState& state, const Rules& rules, Cause cause, const Outcome& outcome) {
  state.cause = cause;
  state.status = outcome.status;
  state.said = outcome.said.substr(0, HostState::max_said);
  state.reason.clear();
  const Duration asked = outcome.wait.value_or(Duration(0));
  state.asked = asked > rules.breaker.retry_after_cap ? asked : Duration(0);
}

void forget_evidence(HostState& state) {
  state.consecutive = 0;
  state.probe_successes = 0;
  state.window.clear();
  state.leases.clear();
}

void enter_open(HostState& state, Instant now) {
  state.phase = Phase::open;
  state.opened_at = now;
  ++state.epoch;
  ++state.counts.trips;
  forget_evidence(state);
}

void enter_closed(HostState& state, Instant now) {
  state.phase = Phase::closed;
  state.closed_at = now;
  state.cause = Cause::none;
  state.status = 0;
  state.asked = Duration(0);
  state.reason.clear();
  state.said.clear();
  forget_evidence(state);
}

// Where the pacer learns, a refusal now and then is what finding a limit costs. `streak` counts the
// answers that were none, since the first one in the window. A policy that shuts at the first
// refusal means it.
bool is_rare(const Rules& rules, const HostState& state) {
  constexpr std::size_t one_in = 5;
  return rules.pace.adapt == Adapt::learned && rules.breaker.window.failures > 1 &&
         rules.breaker.window.kind == OutcomeKind::rate_limited &&
         state.window.size() * (one_in - 1) <= state.streak;
}

// Why a failure that came in time shuts the key; none: it does not yet.
Cause trip_cause(const Rules& rules, const HostState& state, const Outcome& outcome) {
  if (outcome.kind == OutcomeKind::anti_bot) return Cause::anti_bot;
  if (outcome.no_credit) return Cause::no_credit;
  if (names_time(outcome)) return Cause::named_time;
  if (state.phase != Phase::closed) return Cause::probe_failed;
  if (state.consecutive >= rules.breaker.consecutive) return Cause::consecutive;
  if (state.window.size() >= rules.breaker.window.failures && !is_rare(rules, state)) {
    return Cause::window;
  }
  return Cause::none;
}

void note_failure(const Rules& rules, HostState& state, Instant now, OutcomeKind kind) {
  ++state.consecutive;
  if (kind != rules.breaker.window.kind) return;
  auto& window = state.window;
  const Instant oldest = now - rules.breaker.window.within;
  std::erase_if(window, [&](Instant at) { return at <= oldest; });
  if (window.empty()) state.streak = 0;
  if (window.size() >= HostState::max_window) window.erase(window.begin());
  window.push_back(now);
}

// Refused like another before it whose answer was not known yet when this one went: to a pacer that
// learns they are one event, and it sends one at a time from then on. Where nothing learns, each
// counts, or a crowd would never be stopped. Who names a time or asks for money is always heard.
bool is_echo(const Rules& rules, const HostState& state, const Outcome& outcome) {
  return rules.pace.adapt == Adapt::learned && outcome.kind == OutcomeKind::rate_limited &&
         !outcome.no_credit && rules.breaker.window.kind == OutcomeKind::rate_limited &&
         !outcome.wait && state.phase == Phase::closed && !state.window.empty() &&
         outcome.sent != Instant{} && outcome.sent < state.window.back();
}

HostState failed(const Rules& rules, HostState state, Instant now, const Outcome& outcome,
                 double jitter) {
  if (is_echo(rules, state, outcome)) return state;
  state = decayed(rules, std::move(state), now);
  state.calm_since = now;
  if (!outcome.amends) note_failure(rules, state, now, outcome.kind);
  const Cause cause = trip_cause(rules, state, outcome);
  if (cause == Cause::none) return state;

  const bool probing = state.phase != Phase::closed;
  if (cause == Cause::anti_bot) {
    climb(state.antibot_level, rules.breaker.antibot_cooldown);
  } else if (cause != Cause::named_time || probing || state.level == 0) {
    // An origin that says when to come back is not one to be ever more wary of: trips on its word
    // stay on the first rung.
    climb(state.level, rules.breaker.cooldown);
  }
  enter_open(state, now);
  remember(state, rules, cause, outcome);
  shut_for(state, now, cooldown(rules, state, outcome, jitter));
  return state;
}

// A failure from before the trip. It is part of that trip: it climbs nothing. But the time it names
// is the origin's newest word, and a block found late is a block.
HostState failed_late(const Rules& rules, HostState state, Instant now, const Outcome& outcome,
                      double jitter) {
  const HostState before = state;
  const bool open = state.phase == Phase::open;
  if (names_time(outcome)) {
    if (!open) enter_open(state, now);
    if (!open || state.cause == Cause::named_time) {
      remember(state, rules, Cause::named_time, outcome);
    }
  } else if (open && outcome.kind == OutcomeKind::anti_bot && state.cause != Cause::anti_bot) {
    state = decayed(rules, std::move(state), now);
    climb(state.antibot_level, rules.breaker.antibot_cooldown);
    remember(state, rules, Cause::anti_bot, outcome);
  } else if (open && outcome.no_credit && state.cause != Cause::no_credit) {
    remember(state, rules, Cause::no_credit, outcome);
  } else {
    return state;
  }
  shut_for(state, now, cooldown(rules, state, outcome, jitter));
  // What does not lengthen the cooldown that stands is no news.
  return open && state.until == before.until ? before : state;
}

// The origin answered, and not against us.
void answered(const Rules& rules, HostState& state, Instant now, OutcomeKind kind) {
  if (state.phase == Phase::closed) {
    ++state.streak;
    state.consecutive = 0;
    return;
  }
  // After a block, a 403 may be the same block without its marker: only a success is proof.
  if (state.cause == Cause::anti_bot && kind != OutcomeKind::success) return;
  if (++state.probe_successes >= rules.breaker.successes_to_close) enter_closed(state, now);
}

}  // namespace

Phase phase_at(const HostState& state, Instant now) {
  return state.phase == Phase::open && now >= state.until ? Phase::half_open : state.phase;
}

Step decide(const Rules& rules, HostState state, Instant now, const RequestInfo& request) {
  using Act = Decision::Act;
  if (state.phase == Phase::closed) {
    return {{.act = Act::forward, .ticket = {.epoch = state.epoch}}, std::move(state)};
  }
  state.phase = phase_at(state, now);
  Instant until = state.until;
  if (state.phase == Phase::half_open) {
    std::erase_if(state.leases, [&](const ProbeLease& lease) { return lease.expires <= now; });
    const auto slots = std::min<std::size_t>(rules.breaker.trial_calls, HostState::max_leases);
    if (state.leases.size() < std::max<std::size_t>(slots, 1)) {
      const Ticket ticket{state.epoch, ++state.last_lease};
      const Instant deadline = now + rules.breaker.probe_timeout;
      state.leases.push_back({ticket.lease, deadline + lease_grace});
      return {{.act = Act::probe, .until = deadline, .ticket = ticket}, std::move(state)};
    }
    until = std::min_element(state.leases.begin(), state.leases.end(), [](auto& a, auto& b) {
              return a.expires < b.expires;
            })->expires;
  }
  // While a probe is on its way the wait may end any moment, so it is worth waiting at all.
  const Instant patience = request.arrived + rules.hold.max_wait;
  if (state.phase == Phase::half_open && now < patience) {
    return {{.act = Act::hold, .until = std::min(until, patience)}, std::move(state)};
  }
  if (state.phase == Phase::open && until <= patience) {
    return {{.act = Act::hold, .until = until}, std::move(state)};
  }
  return {{.act = Act::refuse, .until = until}, std::move(state)};
}

void learn(const Rules& rules, HostState& state, Instant now, const Outcome& outcome,
           double jitter) {
  if (!outcome.amends) count(state.counts, outcome);
  std::erase_if(state.leases, [&](const ProbeLease& l) { return l.id == outcome.ticket.lease; });
  if (outcome.kind == OutcomeKind::local) return;
  const bool late = is_late(state, outcome.ticket);
  if (!is_failure(rules, outcome.kind)) {
    if (!late) answered(rules, state, now, outcome.kind);
  } else {
    state = late ? failed_late(rules, std::move(state), now, outcome, jitter)
                 : failed(rules, std::move(state), now, outcome, jitter);
  }
}

HostState observe(const Rules& rules, HostState state, Instant now, const Outcome& outcome,
                  double jitter) {
  learn(rules, state, now, outcome, jitter);
  return state;
}

HostState operator_open(HostState state, Instant now, Duration length, std::string_view reason) {
  enter_open(state, now);
  remember(state, Rules{}, Cause::operator_act, Outcome{});
  state.reason = reason.substr(0, HostState::max_reason);
  state.until = now + std::clamp<Duration>(length, Duration(0), kLongestDuration);
  return state;
}

HostState anomaly_open(HostState state, Instant now, Duration length, std::string_view reason) {
  if (phase_at(state, now) == Phase::open && state.until >= now + length) return state;
  state = operator_open(std::move(state), now, length, reason);
  state.cause = Cause::anomaly;
  return state;
}

HostState operator_close(HostState state, Instant now) {
  enter_closed(state, now);
  ++state.epoch;  // what was sent before is late, and what was decided before is older than this
  state.until = Instant{};
  state.pace.hold = Instant{};
  state.level = state.antibot_level = 0;
  return state;
}

HostState decayed(const Rules& rules, HostState state, Instant now) {
  const Duration decay = rules.breaker.decay;
  if (state.level == 0 && state.antibot_level == 0) return state;
  // Being shut is not being quiet.
  const Instant calm_since = std::max(state.calm_since, state.until);
  if (decay <= Duration(0) || now - calm_since < decay) return state;
  const auto steps = (now - calm_since) / decay;
  const auto lowered = [&](std::uint32_t level) {
    return steps >= level ? 0u : level - static_cast<std::uint32_t>(steps);
  };
  state.level = lowered(state.level);
  state.antibot_level = lowered(state.antibot_level);
  state.calm_since = calm_since + steps * decay;
  return state;
}

Duration longest_cooldown(const Rules& rules) {
  const auto longest = [](const std::vector<Duration>& ladder) {
    return ladder.empty() ? Duration(1min) : *std::max_element(ladder.begin(), ladder.end());
  };
  const Duration ours =
      std::max(longest(rules.breaker.cooldown), longest(rules.breaker.antibot_cooldown));
  return std::max(lengthened(rules, ours, 1.0), rules.breaker.retry_after_cap);
}

bool tightens(const HostState& before, const HostState& after) {
  const bool tripped = after.epoch != before.epoch && after.phase != Phase::closed;
  return tripped || after.until > before.until || after.last_lease != before.last_lease;
}

}  // namespace sluice
