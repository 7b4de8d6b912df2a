// The parts of policy/pacer.cpp: each file teaches the pacer one thing. Internal to policy/.
#pragma once

#include <cstdint>

#include "policy/outcome.h"
#include "policy/pacer.h"
#include "policy/policy.h"
#include "policy/time.h"

namespace sluice::pace {

constexpr double least_rate_kept = 1e-5;  // a second

double seconds(Duration duration);
Duration from_seconds(double s);  // clamped to ten years

// pace_window.cpp: "n in any w".
// The roundest length in (lo, hi]: people choose windows of 1, 2, 5, 10, 15, 30, 60 … seconds.
Duration roundest(Duration lo, Duration hi);
// The roundest one well within.
Duration between(Duration lo, Duration hi);
// The length is in (lo, hi], says another witness.
void narrow(PaceMemory& learned, Duration lo, Duration hi);
// Of a length that was found by trying.
void try_shorter(PaceState& state);
// A window with what requests may differ on their way added.
Duration with_slack(Duration length);
Duration without_slack(Duration length);
Instant window_opens(const PaceState& state);
void set_window(PaceState& state, std::uint32_t count, Duration length, Duration shortest,
                Duration longest);

// pace_bucket.cpp: a rate that is not told.
constexpr std::uint32_t edge_patience = 1024;  // where going over it costs more than a refusal
double bucket_pace(const PaceState& state);
Instant bucket_opens(const PaceState& state, Instant now);
void set_tokens(PaceState& state, Instant now, double tokens);
void bucket_take(PaceState& state, Instant now);
void start_bucket(PaceState& state, Instant now, double rate, double burst);
void bucket_refused(PaceState& state, Instant now, Duration unit);

// pace_told.cpp: quota headers.
void read_quota(PaceState& state, Instant now, const PaceTicket& ticket, const Outcome& outcome);
Instant told_opens(const PaceState& state, Instant now);
void told_refused(PaceState& state, Instant now);

// pace_undecided.cpp: who is waited for.
std::uint32_t undecided(const PaceFlight& flight, Instant now);
bool is_probing(const PaceFlight& flight, Instant now);
void note_sent(PaceFlight& flight, Instant now);  // before it is counted
void note_decided(PaceFlight& flight, PaceTicket& ticket);

// pace_places.cpp: how many at once.
void limit_places(PaceState& state, std::uint32_t places);
// Fewer fit than did: true, and then it is no refusal for any other reason.
bool places_fell(PaceState& state, const PaceTicket& ticket);
void try_one_more(PaceState& state);

// pace_refusal.cpp: what a refusal, and the end of it, teach.
void refused(const Rules& rules, PaceState& state, Instant now, const PaceTicket& ticket,
             const Outcome& outcome);
void recovered(const Rules& rules, PaceState& state, Instant now, const PaceTicket& ticket);

// pace_linear.cpp
void linear_refused(const PaceRules& rules, PaceState& state, Instant now,
                    const PaceTicket& ticket);
void linear_succeeded(const PaceRules& rules, PaceState& state, Instant now);

}  // namespace sluice::pace
