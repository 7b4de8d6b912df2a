#include "policy/pacer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policy/pace_models.h"
#include "policy/units.h"

namespace sluice {
namespace pace {

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

Duration from_seconds(double s) {
  const double most = seconds(kLongestDuration);
  return Duration(static_cast<Duration::rep>(std::clamp(s, 0.0, most) * 1e6));
}

}  // namespace pace

namespace {

using namespace pace;

constexpr double first_crowd = 7;       // in flight, once the first answer was good
constexpr unsigned careful_start = 8;   // successes before that grows
constexpr unsigned trusted_after = 18;  // successes before it grows fast
constexpr double crowd_without_limit = 64;
constexpr std::uint32_t window_patience = 16;  // windows before a few more are tried
constexpr std::uint32_t ban_patience = 64;     // of a ban's, before a shorter one is
constexpr Duration longest_hold = 48h;         // that is believed after a restart
constexpr Duration longest_latency = 2500ms;   // that is believed
constexpr Duration per_concurrent = 5s;        // linear: one less in flight for each of these

bool learns(const Rules& rules) { return rules.pace.adapt == Adapt::learned; }

// 0: no limit.
std::uint32_t smaller_limit(std::uint32_t a, std::uint32_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

bool is_gentle(const Rules& rules, const PaceFlight& flight) {
  return flight.gentle > 0 && (learns(rules) || flight.ramping);
}

// That the places may be what the latest refusal was about: one less is tried.
bool seeks_places(const PaceState& state) {
  const PaceIncident& incident = state.flight.incident;
  return incident.probes == 0 && !incident.named && !incident.ban && !incident.rollover &&
         state.learned.model == PaceModel::none && incident.crowd > 2;
}

// In flight at most; 0: nothing limits it.
std::uint32_t most_in_flight(const Rules& rules, const PaceState& state) {
  std::uint32_t most = rules.pace.max_concurrency;
  const auto limit = [&](std::uint32_t n) { most = smaller_limit(most, n); };
  const PaceFlight& flight = state.flight;
  const auto less = static_cast<std::uint32_t>(state.learned.delay / per_concurrent);
  if (rules.pace.adapt == Adapt::linear && less > 0) {
    const std::uint32_t all = rules.pace.max_concurrency > 0 ? rules.pace.max_concurrency
                              : state.learned.cap > 0        ? state.learned.cap
                                                             : 1;
    limit(less >= all ? 1 : all - less);
  }
  if (!learns(rules)) return most;
  if (state.learned.cap > 0) limit(state.learned.cap);
  if (flight.incident.open && seeks_places(state)) limit(flight.incident.crowd - 1);
  return most;
}

// Waited for at once, at most; 0: nothing limits it.
std::uint32_t most_undecided(const Rules& rules, const PaceState& state) {
  const PaceFlight& flight = state.flight;
  const bool alone = learns(rules) && flight.incident.open && !seeks_places(state);
  if (alone) return 1;
  return is_gentle(rules, flight) ? std::max(1u, static_cast<std::uint32_t>(flight.gentle)) : 0;
}

// Between two requests by what the policy, robots.txt and the linear pace say.
Duration spacing(const Rules& rules, const PaceState& state) {
  const Duration linear = rules.pace.adapt == Adapt::linear ? state.learned.delay : Duration(0);
  const Duration crawl = rules.pace.crawl_delay ? state.flight.crawl_delay : Duration(0);
  return std::max(rules.pace.min_delay, crawl) + linear;
}

Instant earliest(const Rules& rules, const PaceState& state, Instant now) {
  const PaceFlight& flight = state.flight;
  Instant at{};
  if (flight.spaced_from != Instant{}) {  // by the rules of now, whatever they were then
    at = flight.spaced_from + spacing(rules, state) +
         from_seconds(seconds(rules.pace.jitter) * flight.jitter);
  }
  if (is_gentle(rules, flight) && flight.latency > Duration(0) && flight.last_sent != Instant{}) {
    const double share = flight.ramping ? 1 + flight.jitter / 2 : 1;
    at = std::max(at,
                  flight.last_sent + from_seconds(share * seconds(flight.latency) / flight.gentle));
  }
  if (!learns(rules)) return at;
  at = std::max(at, state.learned.hold);
  if (flight.incident.open) return std::max(at, flight.incident.hold);
  switch (state.learned.model) {
    case PaceModel::none: break;
    case PaceModel::told: at = std::max(at, told_opens(state, now)); break;
    case PaceModel::window: at = std::max(at, window_opens(state)); break;
    case PaceModel::bucket: at = std::max(at, bucket_opens(state, now)); break;
  }
  return at;
}

// The first request after a quiet time begins a new count, as does the first of a new window.
void begin_cycle(PaceState& state, Instant now) {
  PaceFlight& flight = state.flight;
  const PaceMemory& learned = state.learned;
  const auto begin = [&] {
    flight.cycle = now;
    flight.cycle_ordinal = flight.sent + 1;
    flight.admitted = 0;
  };
  if (flight.cycle == Instant{}) return begin();
  if (flight.incident.open) return;
  if (learned.model == PaceModel::window) {
    if (now - flight.cycle < learned.length) return;
    if (learned.proven < 1) {
      PaceIncident& incident = flight.incident;
      incident = {.open = true, .rollover = true, .at = now, .sent = now, .hold = now};
    }
    flight.before_cycle = flight.cycle;
    flight.before_admitted = flight.admitted;
    flight.rolled = flight.admitted >= learned.count;
    return begin();
  }
  const Duration quiet = now - flight.last_sent;
  if (quiet > std::max<Duration>(2s, (flight.last_sent - flight.cycle) / 2)) begin();
}

// How close together two requests share an entry of the log.
Duration grain_of(const PaceMemory& learned) {
  constexpr std::uint32_t entries = PaceLog::capacity - 8;
  const bool many = learned.model == PaceModel::window && learned.count > entries;
  return many ? learned.length / Duration::rep{entries} : Duration(0);
}

void grow(PaceState& state, Instant now) {
  PaceFlight& flight = state.flight;
  if (flight.gentle <= 0) return;
  const auto goods = flight.clean;
  if (goods <= 1) {
    flight.gentle = std::max(flight.gentle, first_crowd);
  } else if (goods >= careful_start) {
    flight.gentle += goods >= trusted_after ? 4 : 0.25;
  }
  if (flight.gentle >= crowd_without_limit) {
    flight.gentle = 0;
    flight.ramping = false;
    state.learned.known = true;
    state.learned.learned_at = now;
  }
}

// What takes longer than can be believed of a host is a stream that was judged at its end.
void note_latency(PaceFlight& flight, Duration latency) {
  latency = std::min<Duration>(latency, longest_latency);
  if (flight.latency == Duration(0) || latency < flight.latency) {
    flight.latency = std::max<Duration>(latency, Duration(1));
  } else {
    flight.latency += (latency - flight.latency) / 8;
  }
}

// That of a ban is a guess at first, made long. Once it has held, a shorter one is tried, and after
// many windows another; never near one that was too short, for it costs another ban.
void shorten_ban(PaceMemory& learned) {
  learned.longest = learned.length;
  const bool first = learned.shortest == Duration(0) && learned.patience == 0;
  if (!first && learned.proven < ban_patience) return;
  const Duration shorter =
      std::max(learned.length * (first ? 7 : 9) / 10, learned.shortest * 5 / 4);
  if (shorter >= learned.length) return;
  learned.length = shorter;
  learned.patience = ban_patience;
  learned.proven = 0;
}

// A whole window was admitted, right after another: the limit holds. After many of them a few more
// are tried, for it may have been raised.
void note_window(PaceState& state, Instant now) {
  PaceMemory& learned = state.learned;
  PaceFlight& flight = state.flight;
  if (learned.model != PaceModel::window || !flight.rolled || flight.admitted < learned.count) {
    return;
  }
  flight.rolled = false;
  ++learned.proven;
  learned.learned_at = now;
  if (learned.ban) return shorten_ban(learned);
  // What was tried and admitted is tried again at once.
  const auto enough = flight.raising ? 1 : std::max(learned.patience, window_patience);
  if (flight.told || learned.proven < enough) return;
  learned.count += std::max(1u, learned.count / (flight.raising ? 4 : 8));
  learned.proven = 1;
  flight.raising = true;
}

void note_good(PaceFlight& flight) {
  ++flight.clean;
  flight.errors *= 15.0 / 16;
}

void admitted(const Rules& rules, PaceState& state, Instant now, const PaceTicket& ticket,
              const Outcome& outcome) {
  PaceFlight& flight = state.flight;
  note_latency(flight, now - ticket.sent);
  if (ticket.sent >= flight.cycle) ++flight.admitted;
  if (ticket.sent >= flight.emptied) ++flight.since_empty;
  note_good(flight);
  const bool before = !flight.incident.open || ticket.sent < flight.incident.sent;
  if (before && ticket.crowd >= flight.crowded) {
    flight.crowded_times = ticket.crowd > flight.crowded ? 1 : flight.crowded_times + 1;
    flight.crowded = ticket.crowd;
  }
  const bool over = flight.incident.open && ticket.probe && ticket.sent >= flight.incident.at;
  if (over) recovered(rules, state, now, ticket);
  note_window(state, now);
  read_quota(state, now, ticket, outcome);
  grow(state, now);
  if (ticket.crowd >= state.learned.cap) try_one_more(state);
}

// An origin that fails more often than not is given less at once.
void failed(const Rules& rules, PaceState& state) {
  PaceFlight& flight = state.flight;
  flight.errors = flight.errors * 15 / 16 + 1.0 / 16;
  if (flight.errors < 0.25 || !rules.pace.ramp) return;
  flight.gentle = std::max(
      1.0,
      std::min(flight.gentle > 0 ? flight.gentle : 1e9, static_cast<double>(flight.in_flight)) / 2);
  flight.ramping = true;
  flight.errors /= 2;
  flight.clean = careful_start;
}

}  // namespace

Instant pace_opens(const Rules& rules, const PaceState& state, Instant now) {
  const PaceFlight& flight = state.flight;
  const auto most = most_in_flight(rules, state), most_open = most_undecided(rules, state);
  const bool full = most > 0 && flight.in_flight >= most;
  const bool waits = most_open > 0 && undecided(flight, now) >= most_open;
  if (full || waits || is_probing(flight, now)) return Instant::max();
  return earliest(rules, state, now);
}

Instant pace_opens_again(const Rules& rules, const PaceState& state, Instant now) {
  return earliest(rules, state, now);
}

bool pace_only_guesses(const Rules& rules, const PaceState& state, Instant now) {
  const PaceIncident& incident = state.flight.incident;
  const bool told = incident.named || incident.ban || incident.overload || incident.rollover;
  if (!learns(rules) || !incident.open || told) return false;
  if (state.learned.model != PaceModel::none || state.learned.hold > incident.hold) return false;
  PaceState without = state;
  without.flight.incident.hold = without.learned.hold = now;
  return pace_opens(rules, without, now) <= now;
}

PaceTicket pace_take(const Rules& rules, PaceState& state, Instant now, double jitter,
                     bool tunnel) {
  PaceFlight& flight = state.flight;
  if (learns(rules)) {
    begin_cycle(state, now);
    flight.log.add(now, grain_of(state.learned));
    if (state.learned.model == PaceModel::bucket) bucket_take(state, now);
  }
  note_sent(flight, now);
  ++flight.in_flight;
  if (tunnel) ++flight.tunnels;
  ++flight.sent;
  const PaceTicket ticket{.sent = now,
                          .ordinal = flight.sent,
                          .crowd = flight.in_flight,
                          .probe = flight.incident.open,
                          .tunnel = tunnel};
  if (ticket.probe) {
    flight.incident.probing = ticket.ordinal;
    flight.incident.probed = now;
  }
  flight.last_sent = now;
  flight.spaced_from = now;
  flight.jitter = std::clamp(jitter, 0.0, 1.0);
  return ticket;
}

void pace_observe(const Rules& rules, PaceState& state, Instant now, PaceTicket& ticket,
                  const Outcome& outcome) {
  note_decided(state.flight, ticket);
  switch (outcome.kind) {
    case OutcomeKind::local: break;
    case OutcomeKind::success:
    case OutcomeKind::neutral:
      if (rules.pace.adapt == Adapt::linear) linear_succeeded(rules.pace, state, now);
      if (learns(rules)) {
        admitted(rules, state, now, ticket, outcome);
      } else if (state.flight.ramping) {
        note_latency(state.flight, now - ticket.sent);
        note_good(state.flight);
        grow(state, now);
      }
      break;
    case OutcomeKind::rate_limited:
    case OutcomeKind::anti_bot:
      if (outcome.no_credit) break;
      if (rules.pace.adapt == Adapt::linear) linear_refused(rules.pace, state, now, ticket);
      if (learns(rules)) refused(rules, state, now, ticket, outcome);
      break;
    case OutcomeKind::server_error:
    case OutcomeKind::network:
      if (learns(rules) || state.flight.ramping) failed(rules, state);
      break;
  }
}

bool pace_exhausted(const Rules& rules, PaceState& state, Instant now, const PaceTicket& ticket,
                    const Outcome& outcome) {
  // What a probe teaches, the end of an incident among it, is taken as one.
  if (!learns(rules) || state.flight.incident.open) return false;
  read_quota(state, now, ticket, outcome);
  return state.learned.hold > now;
}

void pace_done(PaceState& state, PaceTicket& ticket) {
  if (state.flight.in_flight > 0) --state.flight.in_flight;
  if (ticket.tunnel && state.flight.tunnels > 0) --state.flight.tunnels;
  note_decided(state.flight, ticket);
}

void pace_reopened(const Rules& rules, PaceState& state) {
  PaceFlight& flight = state.flight;
  if (!rules.pace.ramp) return;
  // Where the limit is known by now there is nothing to feel for.
  if (learns(rules) && state.learned.model != PaceModel::none) return;
  flight.gentle = 2;
  flight.ramping = true;
  flight.clean = careful_start;
}

void pace_cleared(PaceState& state) {
  PaceFlight& flight = state.flight;
  flight.incident = {};
  flight.spaced_from = Instant{};
  flight.told = false;
  flight.others = 0;
  flight.log.clear();
  flight.tokens = std::max(1.0, flight.tokens);
  state.learned.hold = Instant{};
}

namespace {

// What no process of ours can have written is not believed.
bool makes_sense(const PaceMemory& learned) {
  switch (learned.model) {
    case PaceModel::none: return true;
    case PaceModel::told:
      if (learned.rate == 0) return true;  // its headers tell what is left, but no rate
      [[fallthrough]];
    case PaceModel::bucket:
      return std::isfinite(learned.rate) && learned.rate >= least_rate_kept &&
             std::isfinite(learned.burst) && learned.burst >= 0;
    case PaceModel::window: return learned.count > 0 && learned.length > Duration(0);
  }
  return false;
}

// Limits change, so what is old is doubted sooner, and at last forgotten. A ban is remembered
// longest.
PaceMemory aged(PaceMemory learned, Instant now) {
  if (learned.learned_at == Instant{}) return learned;
  const Duration age = now - learned.learned_at;
  if (age > (learned.ban ? 90 * 24h : 7 * 24h)) return {};
  if (age > Duration(24h) && !learned.ban) {
    learned.patience = std::min(learned.patience, window_patience);
    learned.cap_patience = std::min(learned.cap_patience, 64u);
  }
  return learned;
}

constexpr Duration written_often = 10s;  // a shorter window is waited for instead

// So many may go out between two writes.
std::uint32_t unwritten_at_most(const PaceMemory& learned) {
  return learned.length < written_often ? learned.count : learned.count / 8 + 1;
}

// What others had used of the limit by their latest write, and what they may have since: as late as
// it can have been.
void assume_used(PaceState& state, Instant now) {
  const PaceMemory& learned = state.learned;
  PaceFlight& flight = state.flight;
  const PaceUse& latest = learned.used.back();
  const Instant end = latest.count == 0 ? now : std::min(now, latest.until + kPaceUnwritten);
  if (learned.model == PaceModel::bucket) set_tokens(state, end, 0);
  if (learned.model != PaceModel::window) return;
  flight.log.clear();
  flight.cycle = end;
  flight.admitted = 0;
  const auto assume = [&](Instant at, std::uint32_t count) {
    flight.log.assume(at, count);
    flight.cycle = std::min(flight.cycle, at);
    flight.admitted += count;
  };
  for (const PaceUse& use : learned.used) {
    const bool counts = use.count > 0 && use.until > end - learned.length && use.until <= end;
    if (counts) assume(use.until, std::min(use.count, learned.count));
  }
  assume(end, latest.count == 0 ? learned.count : unwritten_at_most(learned));
}

}  // namespace

PaceMemory pace_remembered(const PaceState& state) {
  PaceMemory out = state.learned;
  out.used = {};
  const PaceFlight& flight = state.flight;
  const bool limited = out.model == PaceModel::window || out.model == PaceModel::bucket;
  if (!limited || flight.log.size() == 0) return out;
  const Instant last = flight.log.latest(0).at;
  const Duration part = std::max<Duration>(out.length / out.used.size(), Duration(1));
  for (std::size_t i = 0; i < flight.log.size(); ++i) {
    const PaceLog::Entry& entry = flight.log.latest(i);
    const auto back = static_cast<std::size_t>((last - entry.at) / part);
    if (back >= out.used.size()) break;
    PaceUse& use = out.used[out.used.size() - 1 - back];
    use.until = std::max(use.until, entry.at);
    use.count += entry.count;
  }
  return out;
}

bool pace_outdated(const PaceMemory& learned, std::uint64_t sent_since) {
  return learned.model == PaceModel::window && learned.length >= written_often &&
         sent_since >= unwritten_at_most(learned);
}

PaceState pace_restored(const Rules&, PaceMemory learned, Instant now) {
  PaceState state;
  if (!makes_sense(learned)) return state;
  state.learned = learned = aged(learned, now);
  if (learned.known || learned.model != PaceModel::none) state.flight.gentle = 0;
  if (learned.hold > now + longest_hold) state.learned.hold = now + longest_hold;
  // When the latest went is not known: it may have been just now.
  if (learned.delay > Duration(0)) state.flight.spaced_from = now;
  assume_used(state, now);
  return state;
}

void pace_adopted(const Rules& rules, PaceState& state, const PaceMemory& learned, Instant now) {
  if (learned == state.learned || !makes_sense(learned)) return;
  PaceFlight& flight = state.flight;
  const PaceMemory before = std::exchange(state.learned, learned);
  if (rules.pace.adapt == Adapt::linear && learned.delay > before.delay) {
    flight.spaced_from = now;
  }
  if (learned.known || learned.model != PaceModel::none) flight.gentle = 0;
  if (learned.model != before.model) assume_used(state, now);
}

bool pace_tightens(const PaceMemory& before, const PaceMemory& after) {
  const auto capped = [](const PaceMemory& learned) { return learned.cap > 0 ? learned.cap : ~0u; };
  const bool kind = after.model != before.model && after.model != PaceModel::none;
  return after.refusals != before.refusals || after.delay > before.delay ||
         after.delay_floor > before.delay_floor || kind || capped(after) < capped(before) ||
         after.count < before.count || after.length > before.length ||
         after.rate < 0.95 * before.rate || after.hold > before.hold;
}

bool pace_changed(const PaceMemory& before, const PaceMemory& after) {
  return after.model != before.model || after.count != before.count ||
         after.length != before.length || after.cap != before.cap || after.delay != before.delay ||
         std::abs(after.rate - before.rate) > 0.05 * before.rate;
}

}  // namespace sluice
