// What is known about a key's limit, and when the next request may go. Functions of what they are
// given, with time and jitter passed in; never sleeps, never stores. A state is large and changes
// with every request, so it is changed where it stands, by nothing else. It learns from what
// the origin says is left, else from refusals: a window, a bucket, a limit on concurrency, a ban.
// The breaker decides first whether anything may go at all; the pacer, what goes when it may.
#pragma once

#include <cstdint>
#include <string>

#include "policy/host_state.h"
#include "policy/outcome.h"
#include "policy/pace_log.h"
#include "policy/pace_memory.h"
#include "policy/policy.h"
#include "policy/time.h"

namespace sluice {

// A refusal, until the origin admits again: meanwhile requests go one by one.
struct PaceIncident {
  bool open = false;
  bool named = false;     // the origin said how long
  bool overload = false;  // by a 503
  bool ban = false;
  bool rollover = false;      // no refusal yet: the first of a window whose length is not sure
  Instant at{};               // when the first refusal came
  Instant sent{};             // when the first refused request went
  Instant hold{};             // nothing goes before
  std::uint32_t crowd = 0;    // in flight when the refused one went, with it
  std::uint32_t probes = 0;   // that were refused since
  Instant last_probe{};       // when the latest of them went
  std::uint64_t probing = 0;  // the ordinal of the probe on its way; 0: none
  Instant probed{};           // when it went
  bool operator==(const PaceIncident&) const = default;
};

// Requests that went and have not been answered yet. In two generations, so that one whose answer
// does not come is given up without a list of all.
struct PaceUndecided {
  std::uint32_t older = 0, newer = 0;
  std::uint64_t given_up = 0;  // up to this ordinal none counts
  std::uint64_t turn = 0;      // up to this one they are older
  Instant turned{};            // when it went
  bool operator==(const PaceUndecided&) const = default;
};

// What dies with the process.
struct PaceFlight {
  std::uint32_t in_flight = 0;
  std::uint32_t tunnels = 0;  // of them: each for as long as it is open, used or not
  PaceUndecided undecided;
  std::uint64_t sent = 0;  // requests so far: the ordinal of the latest
  Instant last_sent{};
  Instant spaced_from{};            // min_delay and the linear delay count from here
  double jitter = 0;                // of the spacing that is waited for now, in [0, 1)
  Duration crawl_delay{};           // by robots.txt
  Duration latency{};               // of an admitted request, typical; 0: unknown
  std::uint32_t crowded = 0;        // the most in flight with which one was admitted
  std::uint32_t crowded_times = 0;  // how often
  bool not_places = false;          // refused with fewer in flight than were admitted before
  std::uint32_t refused_crowd = 0;  // in flight with the latest that was refused
  double gentle = 1;  // undecided at most, by slow start or after a cooldown; 0: no more in force
  bool ramping = false;  // after a cooldown, or errors
  double errors = 0;     // share of the latest answers that were server errors
  PaceLog log;
  PaceIncident incident;
  Instant cycle{};                  // the first request of the running window
  std::uint64_t cycle_ordinal = 0;  // its ordinal
  std::uint32_t admitted = 0;       // since then
  bool rolled = false;              // it followed another window, and is not over
  bool raising = false;    // its count, or the places, were raised, and no refusal came yet
  Instant before_cycle{};  // the window before
  std::uint32_t before_admitted = 0;
  std::uint32_t clean = 0;   // successes since the last refusal or change of pace
  std::uint32_t at_cap = 0;  // successes since the cap was set
  double tokens = 0;         // bucket: our guess at what is in it
  Instant tokens_at{};
  Instant emptied{};              // bucket: the last refusal
  std::uint32_t since_empty = 0;  // bucket: admitted since then
  bool idled = false;             // bucket: since then, tokens were left unused

  // Quota headers: what the answer to the latest-sent request said.
  bool told = false;
  std::uint64_t told_ordinal = 0;
  Instant told_at{};
  double told_remaining = 0;
  Instant told_reset{};
  double told_most = 0;           // the most that was ever left
  double told_refill = 0;         // by the headers' own arithmetic; 0: unknown
  bool refill_seen = false;       // measured, so the headers are those of a bucket
  bool refill_denied = false;     // measured, and there is none: a window
  double refill = 0;              // measured, others' use taken off
  std::uint32_t unshared = 0;     // measurements in a row that saw nobody else
  std::uint32_t alone_after = 1;  // so many of them, and no reserve is kept for others
  Instant gauge_at{};             // where the measurement began
  double gauge_remaining = 0;
  double gauge_doubt = 0;
  std::uint64_t gauge_ordinal = 0;
  std::uint32_t others = 0;  // of a window's count, used by somebody else

  bool operator==(const PaceFlight&) const = default;
};

struct PaceState {
  PaceMemory learned;
  PaceFlight flight;
  bool operator==(const PaceState&) const = default;
};

// What one forwarded request carries until it is over.
struct PaceTicket {
  Instant sent{};
  std::uint64_t ordinal = 0;
  std::uint32_t crowd = 0;  // in flight, with this one
  bool probe = false;       // sent alone to learn when an incident is over
  bool decided = false;     // its answer is known
  bool tunnel = false;
  bool operator==(const PaceTicket&) const = default;
};

// When a request may go: `now` or before, if at once. Else ask again then, or after any answer.
// Instant::max(): only an answer can change it, or that none comes: see pace_gives_up().
Instant pace_opens(const Rules& rules, const PaceState& state, Instant now);

// The same for one whose place is free by then: that which has just been refused.
Instant pace_opens_again(const Rules& rules, const PaceState& state, Instant now);

// Nothing but a guess keeps the next request back: the origin refuses, has not said for how long,
// and nothing is known of its limit. It may go, one at a time, if it cannot wait: how long such a
// host is left alone is the breaker's to say.
bool pace_only_guesses(const Rules& rules, const PaceState& state, Instant now);

// When an answer that is missing now is waited for no more: whoever sends long streams, or answers
// when there is news, keeps nobody else waiting. Instant::max(): none is missing.
Instant pace_gives_up(const PaceState& state, Instant now);

// One goes, whatever the pace says: it takes its slot. To be reported with pace_observe and
// pace_done. `jitter` is in [0, 1).
PaceTicket pace_take(const Rules& rules, PaceState& state, Instant now, double jitter,
                     bool tunnel = false);

// What an answer's head, or a failure, teaches. Once for each request that went, at most; again
// only when the body of what looked like a success tells otherwise.
void pace_observe(const Rules& rules, PaceState& state, Instant now, PaceTicket& ticket,
                  const Outcome& outcome);

// An admitted answer's head says that nothing is left: that counts before its body was looked at
// and pace_observe is told. True: nothing goes for some time, which is in `learned`.
bool pace_exhausted(const Rules& rules, PaceState& state, Instant now, const PaceTicket& ticket,
                    const Outcome& outcome);

// The exchange is over, answered or not, or the client left: its place is free.
void pace_done(PaceState& state, PaceTicket& ticket);

// The breaker closed again after a cooldown: resume slowly, unless the limit is known by now.
void pace_reopened(const Rules& rules, PaceState& state);

// An operator cleared the key: what is known about its limit stays, no refusal is waited out.
void pace_cleared(PaceState& state);

// What a process leaves to the next one: what was learned, and how much of the limit was used.
PaceMemory pace_remembered(const PaceState& state);
// After so many requests since the last pace_remembered(), it is to be written down again: a crash
// must not make the next process believe that much more of the limit is left than there is.
bool pace_outdated(const PaceMemory& learned, std::uint64_t sent_since);

// What a process makes of what the one before it had learned.
PaceState pace_restored(const Rules& rules, PaceMemory learned, Instant now);

// What another process has learned counts here, too, from now on.
void pace_adopted(const Rules& rules, PaceState& state, const PaceMemory& learned, Instant now);

// From `before` to `after` less is allowed: to be durable before anyone acts on it.
bool pace_tightens(const PaceMemory& before, const PaceMemory& after);
// What people would call a change of pace, worth a line in the log.
bool pace_changed(const PaceMemory& before, const PaceMemory& after);

// "about 30 per 60 s, from 4 refusals; before: no limit met; because it refused with 429 for 20 s"
std::string pace_change_sentence(const Rules& rules, const PaceMemory& before,
                                 const PaceMemory& after, const Outcome& why);
// "about 30 per 60 s, from 4 refusals; next slot in 1.2 s", or why only an end of another can help:
// "all 2 places of pace.max_concurrency are taken, 1 by an open tunnel; the next is free after an
// answer or the end of a tunnel"
std::string pace_sentence(const Rules& rules, const PaceState& state, Instant now);

}  // namespace sluice
