// What quota headers tell: how many are left, and when there will be more. The answer to the
// request that was sent last is the newest word; what was sent after it is taken off, what has been
// refilled since is added. Whether the headers are those of a bucket or of a window is measured.
#include <algorithm>
#include <cmath>

#include "policy/dialects.h"
#include "policy/pace_models.h"

namespace sluice::pace {
namespace {

// Measurements that must see nobody else, once somebody was seen.
constexpr std::uint32_t patience_with_others = 4;

// The quota that counts requests; others count tokens, or days.
const Quota* requests_of(const Signal& signal) {
  const Quota* best = nullptr;
  for (std::size_t i = 0; i < signal.quota_count; ++i) {
    const Quota& quota = signal.quotas[i];
    if (!quota.remaining) continue;
    if (quota.dimension == 0 || quota.dimension == name_hash("requests")) return &quota;
    if (!best || *quota.remaining < *best->remaining) best = &quota;
  }
  return best;
}

double rate_of(const Quota& policy) {
  if (!policy.limit || !policy.window || *policy.window <= Duration(0)) return 0;
  return static_cast<double>(*policy.limit) / seconds(*policy.window);
}

// How fast a bucket with these headers would be refilled; 0: they do not tell. `before` is what the
// answers up to now told.
double told_rate(const Signal& signal, const Quota& quota, double before) {
  double slowest = rate_of(quota);
  // RateLimit-Policy up to draft 06 names its policies by their number: "10;w=1".
  for (std::size_t i = 0; i < signal.quota_count; ++i) {
    const Quota& policy = signal.quotas[i];
    const double rate = policy.remaining ? 0 : rate_of(policy);
    if (rate > 0 && (slowest == 0 || rate < slowest)) slowest = rate;
  }
  if (slowest > 0) return slowest;
  // Whole seconds are too coarse to divide by.
  if (quota.limit && quota.reset && !quota.absolute && *quota.reset % Duration(1s) != Duration(0) &&
      *quota.limit > *quota.remaining) {
    // What is left was rounded down: the truth is up to one less than what seems to be missing.
    const auto missing = static_cast<double>(*quota.limit - *quota.remaining);
    const double most = missing / seconds(*quota.reset), least = most * (missing - 1) / missing;
    return before > 0 ? std::clamp(before, least, most) : most;
  }
  return before;
}

double refill_of(const PaceFlight& flight) {
  if (flight.refill_denied) return 0;
  return flight.refill > 0 ? std::min(flight.refill, flight.told_refill) : flight.told_refill;
}

// How many must be left for one to go: with a reserve for others, until there was time to see that
// there are none.
double needed_of(const PaceFlight& flight) {
  if (flight.unshared >= flight.alone_after) return 1.3;
  return std::clamp(flight.told_most / 2, 1.3, 3.0);
}

// What is left by then, when all up to that ordinal have come.
double left_at(const PaceState& state, Instant at, std::uint64_t ordinal) {
  const PaceFlight& flight = state.flight;
  const double refilled = refill_of(flight) * seconds(at - flight.told_at);
  return std::min(flight.told_remaining + refilled, std::max(flight.told_most, 3.0)) -
         static_cast<double>(ordinal - flight.told_ordinal);
}

void begin_gauge(PaceFlight& flight, const PaceTicket& ticket, double remaining, double doubt) {
  flight.gauge_doubt = doubt;
  flight.gauge_at = ticket.sent;
  flight.gauge_ordinal = ticket.ordinal;
  flight.gauge_remaining = remaining;
}

// Measures the refill: what is left now, against what was left before and went since.
void gauge(PaceFlight& flight, const PaceTicket& ticket, double remaining, double own_doubt) {
  if (flight.gauge_at == Instant{}) return begin_gauge(flight, ticket, remaining, own_doubt);
  const double doubt = own_doubt + flight.gauge_doubt - 1;
  const double time = seconds(ticket.sent - flight.gauge_at);
  const auto went = static_cast<double>(ticket.ordinal - flight.gauge_ordinal);
  const double gain = remaining + went - flight.gauge_remaining;
  const double expected = flight.told_refill * time;
  if (gain >= doubt && expected >= 0.5) flight.refill_seen = true;
  // Full buckets gain nothing.
  const bool full = remaining + 2 >= flight.told_most;
  if (!flight.refill_seen && !full && expected >= 2 + doubt && gain < 1)
    flight.refill_denied = true;
  if (flight.refill == 0) flight.refill = flight.told_refill;
  const double believed = flight.refill * time;
  if (full && gain < believed) {
    flight.refill = flight.told_refill;
    // A small one is never seen otherwise: nobody took what was there.
    if (flight.told_most <= 3) flight.unshared = std::min(flight.unshared + 1, flight.alone_after);
  } else if (gain + doubt < believed) {  // others are quick to be heeded
    const double net = (gain + 0.5) / time;
    flight.refill = std::clamp(net, 0.25 * flight.told_refill, flight.told_refill);
    flight.unshared = 0;
    flight.alone_after = patience_with_others;
  } else if (gain - doubt > believed) {  // and slow to be forgotten
    flight.refill = std::min(flight.told_refill, 0.5 * (flight.refill + (gain - 0.5) / time));
  } else if (believed < 10 * doubt) {
    return;
  } else {
    const bool whole = flight.refill > 0.95 * flight.told_refill;
    flight.unshared = whole ? std::min(flight.unshared + 1, flight.alone_after) : 0;
  }
  begin_gauge(flight, ticket, remaining, own_doubt);
}

// A window's headers: its length follows from when it began and when it ends, ever closer, for no
// two answers come in the same part of a second.
void read_window(PaceState& state, Instant now, const PaceTicket& ticket, const Quota& quota) {
  PaceFlight& flight = state.flight;
  PaceMemory& learned = state.learned;
  if (!quota.limit || !quota.reset || *quota.limit == 0) return;
  const auto limit = static_cast<std::uint32_t>(std::min<std::uint64_t>(*quota.limit, 1u << 30));
  const auto used = limit - std::min<std::uint64_t>(limit, *quota.remaining);
  const bool ours =
      ticket.ordinal >= flight.cycle_ordinal && used == ticket.ordinal - flight.cycle_ordinal + 1;
  const bool known = learned.model == PaceModel::window && !learned.ban;
  if (known) {
    const auto mine =
        flight.log.after(ticket.sent - learned.length) - flight.log.after(ticket.sent);
    flight.others = used > mine ? static_cast<std::uint32_t>(used - mine) : 0;
    learned.count = limit;
  }
  if (!ours) {
    if (!known) learned.model = PaceModel::told;  // somebody began it before us
    return;
  }
  // Whole seconds were rounded up; a date in whole seconds, counted from another such date, twice.
  const bool whole = *quota.reset % Duration(1s) == Duration(0);
  const Duration grain =
      (whole ? Duration(1s) : Duration(1ms)) + (quota.absolute ? Duration(1s) : Duration(0));
  const Duration hi = now + *quota.reset - flight.cycle;
  const Duration lo = ticket.sent + *quota.reset - flight.cycle - grain;
  if (hi <= Duration(0)) return;
  if (known) {
    narrow(learned, lo, hi);
  } else {
    set_window(state, limit, hi, lo, hi);
  }
  const Duration bare = without_slack(learned.length);
  if (known && (quota.window || (bare > learned.shortest && bare <= learned.longest &&
                                 learned.longest - learned.shortest > Duration(1500ms)))) {
    return;
  }
  const bool twice = quota.absolute && learned.longest - learned.shortest > Duration(1100ms);
  const Duration length = quota.window ? *quota.window
                          : twice      ? between(learned.shortest, learned.longest)
                                       : roundest(learned.shortest, learned.longest);
  if (known && with_slack(length) == learned.length) return;
  learned.length = with_slack(length);
  learned.proven = 0;
  learned.learned_at = now;
}

// When the next request may go, now that the headers say that nothing is left.
Instant next_after_none_left(const PaceState& state, Instant now) {
  switch (state.learned.model) {
    case PaceModel::told: return told_opens(state, now);
    case PaceModel::window: return window_opens(state);
    default: return state.flight.told_reset;
  }
}

// What is waited for because of the headers outlives the process. Each change of it is written
// before the client has its answer, so it is not made for a wait as short as that of a busy bucket,
// nor for every answer of those that name the same end.
void hold_until_refilled(PaceState& state, Instant now, bool none_left) {
  constexpr Duration worth_keeping = 2s;
  PaceMemory& learned = state.learned;
  if (state.flight.incident.open) return;  // it knows better
  const Instant next = none_left ? next_after_none_left(state, now) : now;
  if (next == Instant::max() || next <= now + worth_keeping) {
    learned.hold = {};
  } else if (next > learned.hold + worth_keeping || next < learned.hold - worth_keeping) {
    learned.hold = next;
    learned.learned_at = now;
  }
}

}  // namespace

void read_quota(PaceState& state, Instant now, const PaceTicket& ticket, const Outcome& outcome) {
  PaceFlight& flight = state.flight;
  const Quota* const quota = requests_of(outcome.signal);
  if (!quota || (flight.told && ticket.ordinal <= flight.told_ordinal)) return;
  const auto remaining = static_cast<double>(*quota->remaining);
  flight.told_most = std::max(flight.told_most, remaining + 1);
  flight.told_refill = told_rate(outcome.signal, *quota, flight.told_refill);
  if (quota->limit) flight.told_most = std::max(flight.told_most, double(*quota->limit));
  // What is told is rounded down; and of requests that were on their way together nobody knows in
  // which order they came.
  const double doubt =
      1 + std::max<double>(ticket.crowd - 1.0, static_cast<double>(flight.sent - ticket.ordinal));
  // A bucket that may have been full in between has lost some of its refill.
  if (flight.told_remaining + refill_of(flight) * seconds(ticket.sent - flight.told_at) >=
      flight.told_most) {
    flight.gauge_at = {};
  }
  if (flight.told_refill > 0) gauge(flight, ticket, remaining, doubt);
  const double expected = left_at(state, ticket.sent, ticket.ordinal);
  flight.told_remaining = doubt == 1 || !flight.told     ? remaining
                          : remaining > expected + doubt ? remaining - doubt
                                                         : std::min(remaining, expected);
  flight.told = true;
  flight.told_ordinal = ticket.ordinal;
  flight.told_at = ticket.sent;
  if (quota->reset) flight.told_reset = now + *quota->reset;
  flight.gentle = 0;
  state.learned.known = true;
  if (flight.told_refill > 0 && !flight.refill_denied) {
    state.learned.model = PaceModel::told;
    state.learned.rate = flight.told_refill;
    state.learned.burst = flight.told_most;
    state.learned.learned_at = now;
  } else {
    read_window(state, now, ticket, *quota);
  }
  hold_until_refilled(state, now, quota->exhausted());
}

Instant told_opens(const PaceState& state, Instant now) {
  const PaceFlight& flight = state.flight;
  if (!flight.told) return now;  // after a restart: the first answer tells
  const bool bucket = flight.told_refill > 0 && !flight.refill_denied;
  const double needed = !bucket ? 1 : needed_of(flight);
  const double left = left_at(state, now, flight.sent);
  if (left >= needed) return now;
  // Answers that never came, or told nothing: since then it has been refilled.
  if (bucket && undecided(flight, now) == 0 && flight.sent > flight.told_ordinal) {
    return std::max(now, flight.last_sent + from_seconds(needed / refill_of(flight)));
  }
  if (bucket) return now + from_seconds((needed - left) / refill_of(flight)) + Duration(1);
  // A window that has come to its end: one asks how the next one stands.
  if (now < flight.told_reset) return flight.told_reset;
  return undecided(flight, now) == 0 ? now : Instant::max();
}

void told_refused(PaceState& state, Instant now) {
  PaceFlight& flight = state.flight;
  flight.refill = std::max(flight.refill, flight.told_refill) * 0.7;
  flight.told_remaining = 0;
  flight.told_at = now;
  flight.told_ordinal = flight.sent;
  flight.gauge_at = {};
  // The headers were wrong, so for now they are not gone by: until there is surely one.
  const bool bucket = flight.told_refill > 0 && !flight.refill_denied;
  const Instant next = bucket ? now + from_seconds(1 / refill_of(flight)) : flight.told_reset;
  flight.incident.hold = std::max({flight.incident.hold, next, now + flight.latency});
}

}  // namespace sluice::pace
