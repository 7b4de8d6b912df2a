// What a refusal teaches, and what the first admission after it. A refusal opens an incident:
// requests then go one by one, at the moments that tell most, until one is admitted.
#include <algorithm>
#include <optional>

#include "policy/pace_models.h"

namespace sluice::pace {
namespace {

// The shortest time after which the operator believes an origin to have recovered.
Duration unit(const Rules& rules) {
  const auto& ladder = rules.breaker.cooldown;
  return ladder.empty() ? Duration(1min) : std::max<Duration>(ladder.front(), 10ms);
}

// When the window ends, by a refusal: in (lo, hi].
struct End {
  Instant lo{}, hi{};
};

// What is told in whole seconds was rounded up to them; a date is waited for a second more.
std::optional<End> end_of(Instant now, const Outcome& outcome) {
  if (!outcome.wait) return std::nullopt;
  const auto* const quotas = outcome.signal.quotas.begin();
  const bool dated = std::any_of(quotas, quotas + outcome.signal.quota_count,
                                 [](const Quota& quota) { return quota.absolute; });
  const bool whole = *outcome.wait % Duration(1s) == Duration(0);
  const Instant hi = now + *outcome.wait - (dated ? Duration(1s) : Duration(0));
  const Duration grain =
      (whole ? Duration(1s) : Duration(1ms)) + (dated ? Duration(1s) : Duration(0));
  return End{hi - grain, hi};
}

// The window was longer than believed: its first request came too early. The origin may say again
// when it ends.
void rolled_too_early(PaceState& state, const PaceTicket& ticket, const std::optional<End>& end) {
  PaceFlight& flight = state.flight;
  PaceMemory& learned = state.learned;
  flight.cycle = flight.before_cycle;
  flight.admitted = flight.before_admitted;
  flight.rolled = false;
  learned.shortest = std::max(learned.shortest, ticket.sent - flight.cycle);
  if (learned.longest <= learned.shortest) learned.longest = learned.shortest * 3 / 2;
  learned.proven = 0;
  if (learned.coarse) {  // the one that held before holds
    learned.length = learned.longest;
    return;
  }
  if (end) narrow(learned, end->lo - flight.cycle, end->hi - flight.cycle);
  learned.length = with_slack(roundest(learned.shortest, learned.longest));
}

void start_incident(PaceState& state, Instant now, const PaceTicket& ticket) {
  PaceFlight& flight = state.flight;
  flight.incident = {.open = true, .at = now, .sent = ticket.sent, .hold = now};
  flight.incident.crowd = ticket.crowd;
}

// The origin said when: that is the end of a window.
void named(PaceState& state, Instant now, const End& end) {
  PaceFlight& flight = state.flight;
  PaceMemory& learned = state.learned;
  const Duration lo = end.lo - flight.cycle, hi = end.hi - flight.cycle;
  if (now - flight.cycle > end.hi - now) {  // who used it up slowly cannot tell when it began
    learned.longest = hi;
    learned.shortest = lo;
    learned.length = with_slack(roundest(end.lo - now, end.hi - now));
    return;
  }
  if (learned.model == PaceModel::window && !learned.ban) {
    narrow(learned, lo, hi);
    const Duration bare = without_slack(learned.length);
    if (bare > learned.shortest && bare <= learned.longest) return;
  } else {
    learned.longest = hi;
    learned.shortest = lo;
  }
  learned.length = with_slack(roundest(learned.shortest, learned.longest));
}

void probe_again(const Rules& rules, PaceState& state, Instant now) {
  PaceFlight& flight = state.flight;
  PaceIncident& incident = flight.incident;
  const Duration latency = std::max<Duration>(flight.latency, 1ms);
  // As many were in flight before, and admitted: it is not that they were too many. And when the
  // others are over by then, one alone cannot tell.
  const bool over = latency < Duration(50ms);
  if (incident.probes == 0 && (over || incident.crowd <= flight.crowded || flight.not_places)) {
    incident.probes = 1;
  }
  if (incident.probes == 0) {
    incident.hold = now + std::max<Duration>(30ms, latency / 8);
  } else if (incident.probes == 1) {
    incident.hold = incident.at + std::max<Duration>(5 * latency, 100ms);
  } else {
    Duration guess = unit(rules) * 3 / 2;
    for (int i = 0; flight.cycle + guess <= now && guess < Duration(24h); ++i) {
      guess = i % 2 == 0 ? guess * 4 / 3 : guess * 3 / 2;  // 3, 4, 6, 8, 12
    }
    incident.hold = flight.cycle + with_slack(guess);
  }
}

}  // namespace

namespace {

void learn(const Rules& rules, PaceState& state, Instant now, const PaceTicket& ticket,
           const Outcome& outcome) {
  PaceFlight& flight = state.flight;
  PaceMemory& learned = state.learned;
  PaceIncident& incident = flight.incident;
  flight.log.remove(ticket.sent);
  const bool late = incident.open && !incident.rollover && ticket.sent < incident.at;
  if (late || (!incident.open && ticket.sent < flight.emptied)) return;
  ++learned.refusals;
  learned.learned_at = now;
  const bool fresh = !incident.open || incident.rollover;
  const bool early = learned.model == PaceModel::window && fresh && flight.admitted == 0 &&
                     flight.before_cycle != Instant{} && outcome.kind == OutcomeKind::rate_limited;
  if (early) rolled_too_early(state, ticket, end_of(now, outcome));
  if (fresh) {
    start_incident(state, now, ticket);
    incident.probes = early ? 2 : 0;
  } else {
    ++incident.probes;
    incident.last_probe = ticket.sent;
    incident.probing = 0;
  }
  flight.at_cap = 0;
  if (outcome.kind == OutcomeKind::rate_limited && !outcome.wait && fresh &&
      places_fell(state, ticket)) {
    return;
  }
  if (learned.model == PaceModel::window && fresh && !early) {
    learned.patience = std::clamp(2 * learned.patience, 32u, 1024u);
    flight.raising = false;
  }
  if (learned.model != PaceModel::bucket) flight.clean = 0;

  // Refused twice with about the same number in flight, admitted with any less: that is the limit.
  if (ticket.crowd + 1 < flight.crowded) flight.not_places = true;
  const bool places = fresh && !flight.not_places && ticket.crowd > 2 &&
                      ticket.crowd + 1 >= flight.refused_crowd && flight.refused_crowd > 0 &&
                      ticket.crowd >= flight.crowded && !flight.idled &&
                      flight.since_empty >= ticket.crowd;
  if (fresh) flight.refused_crowd = ticket.crowd;

  if (outcome.kind == OutcomeKind::anti_bot) {
    incident.ban = true;
    return;  // the breaker keeps silence
  }
  if (outcome.wait && outcome.status == 503) {
    incident.overload = true;
    if (learned.model == PaceModel::bucket && fresh) bucket_refused(state, now, unit(rules));
    return;
  }
  if (learned.model == PaceModel::told) return told_refused(state, now);
  if (outcome.wait) {
    incident.named = true;
    if (!early) named(state, now, *end_of(now, outcome));
    incident.hold = std::max(incident.hold, flight.cycle + learned.length);
    return;
  }
  if (places && learned.model != PaceModel::window) {
    limit_places(state, ticket.crowd - 1);
  } else if (early) {
    incident.hold = flight.cycle + learned.length;
  } else if (learned.model == PaceModel::bucket) {
    bucket_refused(state, now, unit(rules));
    incident.hold = now + from_seconds(1 / learned.rate);
  } else if (learned.model == PaceModel::window && fresh) {
    incident.probes = 2;
    incident.hold = flight.cycle + learned.length;
  } else {
    probe_again(rules, state, now);
  }
}

// Admitted again with nearly as many others in flight; or never refused with one less, often tried.
bool depends_on_places(const PaceFlight& flight, const PaceIncident& incident,
                       const PaceTicket& ticket) {
  if (ticket.crowd >= 2 && 2 * ticket.crowd >= incident.crowd) return true;
  return incident.crowd == flight.crowded + 1 && flight.crowded_times >= 3;
}

void learned_ban(const Rules& rules, PaceState& state, Duration silence, std::uint32_t before) {
  PaceMemory& learned = state.learned;
  const auto& ladder = rules.breaker.antibot_cooldown;
  if (!ladder.empty()) silence = std::min(silence, ladder.front());
  if (learned.ban && learned.model == PaceModel::window) {
    // Back to the length that held, if there is one.
    learned.shortest = std::max(learned.shortest, learned.length);
    const bool held = learned.longest > learned.shortest;
    learned.length = held ? learned.longest : std::max(learned.length * 3 / 2, silence / 2);
    learned.proven = 0;
  } else {
    set_window(state, before, silence / 2, Duration(0), Duration(0));
    learned.ban = true;
  }
}

// Refused before anything was admitted: how many may go, it does not tell. The host is as unknown
// as before.
bool tells_nothing(const PaceState& state, const PaceIncident& incident, std::uint32_t before) {
  const bool waited = incident.named || incident.ban || incident.overload || incident.probes > 1;
  return before == 0 && waited && state.learned.model == PaceModel::none;
}

}  // namespace

void refused(const Rules& rules, PaceState& state, Instant now, const PaceTicket& ticket,
             const Outcome& outcome) {
  learn(rules, state, now, ticket, outcome);
  const PaceIncident& incident = state.flight.incident;
  state.learned.hold = incident.open && incident.hold > now ? incident.hold : Instant{};
}

void recovered(const Rules& rules, PaceState& state, Instant now, const PaceTicket& ticket) {
  PaceFlight& flight = state.flight;
  state.learned.hold = {};
  PaceMemory& learned = state.learned;
  const PaceIncident incident = flight.incident;
  flight.incident = {};
  if (incident.rollover) {
    ++learned.proven;
    learned.learned_at = now;
    learned.longest = std::min(learned.longest, ticket.sent - flight.before_cycle);
    if (learned.coarse) try_shorter(state);
    return;
  }
  // The one that was just counted belongs to what begins now.
  const std::uint32_t before = flight.admitted > 0 ? flight.admitted - 1 : 0;
  const double took = seconds(ticket.sent - incident.sent);
  if (tells_nothing(state, incident, before)) {
    if (flight.gentle <= 0) flight.gentle = 1;
  } else if (incident.ban) {
    learned_ban(rules, state, ticket.sent - incident.at, before);
  } else if (incident.overload) {
    if (learned.model != PaceModel::bucket) {
      // Servers count their load by the second: that much at once, and that much refilled since.
      const double span = 1 + seconds(incident.sent - flight.cycle);
      const double rate = 0.97 * (before + 0.5) / span;
      start_bucket(state, now, rate, rate - 1);
      learned.patience = edge_patience;
      learned.ban = true;
    }
    set_tokens(state, now, learned.burst - 1);  // it had time to be full again
  } else if (learned.model == PaceModel::bucket || learned.model == PaceModel::told) {
    return;
  } else if (incident.named) {
    set_window(state, before, without_slack(learned.length), learned.shortest, learned.longest);
  } else if (incident.probes == 0 && incident.crowd > 1 &&
             depends_on_places(flight, incident, ticket)) {
    limit_places(state, incident.crowd - 1);
  } else if (incident.probes <= 1) {
    learned.cap = 0;
    learned.patience = 0;
    start_bucket(state, incident.at, 0.7 / std::max(took, 1e-3), std::max(1.0, before - 1.0));
    flight.since_empty = 1;
    set_tokens(state, now, 0);
  } else if (learned.model == PaceModel::window) {
    // One refusal is not believed to have taken nearly everything: it may be somebody else's use.
    if (before > 0 && before < learned.count) learned.count = std::max(before, learned.count / 4);
    learned.proven = 0;
    if (learned.coarse) try_shorter(state);
  } else {
    const Duration length = ticket.sent - flight.cycle;
    set_window(state, before, length, incident.last_probe - flight.cycle, length);
    learned.length = length;
    learned.coarse = true;
    try_shorter(state);
  }
  flight.cycle = ticket.sent;
  flight.cycle_ordinal = ticket.ordinal;
  flight.admitted = 1;
}

}  // namespace sluice::pace
