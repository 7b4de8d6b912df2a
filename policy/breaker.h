// The breaker of one key: closed, open, half-open. Pure functions from a state to the next one,
// with the time and the jitter passed in: the same arguments always give the same answer. Never
// sleeps, never stores; whoever calls keeps the state and makes each change durable where it must
// be.
#pragma once

#include <cstdint>
#include <string_view>

#include "policy/host_state.h"
#include "policy/outcome.h"
#include "policy/policy.h"
#include "policy/time.h"

namespace sluice {

struct RequestInfo {
  Instant arrived{};  // holding ends `hold.max_wait` after this
};

struct Decision {
  enum class Act : std::uint8_t {
    forward,
    probe,   // forward, and it counts: report its outcome by `until`, silence being a failure
    hold,    // ask again at `until`, or when the key's state has changed
    refuse,  // the client may ask again at `until`
  };
  Act act = Act::forward;
  Instant until{};
  Ticket ticket{};  // of a forward or probe; goes into its Outcome
  bool operator==(const Decision&) const = default;
};

struct Step {
  Decision decision;
  HostState next;
};

// May this request go? Asking takes a probe's lease when it is given one.
Step decide(const Rules& rules, HostState state, Instant now, const RequestInfo& request);

// What an outcome teaches. One that amends another is counted no second time, but may shut the key
// or keep it shut for longer. `jitter` is in [0, 1): how much of the policy's jitter is added to a
// cooldown of ours. Times that the origin named are kept to exactly.
HostState observe(const Rules& rules, HostState state, Instant now, const Outcome& outcome,
                  double jitter);

// The same, where the state stands: most outcomes change a number or two of it.
void learn(const Rules& rules, HostState& state, Instant now, const Outcome& outcome,
           double jitter);

// An operator's word counts for exactly the time given; the cooldown that stood is forgotten.
HostState operator_open(HostState state, Instant now, Duration length, std::string_view reason);
// The same on our own word, for something unusual; never shorter than what stands.
HostState anomaly_open(HostState state, Instant now, Duration length, std::string_view reason);
// Clears the cooldown, its levels and everything held against the key.
HostState operator_close(HostState state, Instant now);

// The phase as anybody would find it: an open key whose cooldown is over is half-open.
Phase phase_at(const HostState& state, Instant now);

// The levels as they are after the quiet until `now`.
HostState decayed(const Rules& rules, HostState state, Instant now);

// The longest cooldown these rules ever give.
Duration longest_cooldown(const Rules& rules);

// From `before` to `after` less is allowed: to be durable before anyone acts on it.
bool tightens(const HostState& before, const HostState& after);

}  // namespace sluice
