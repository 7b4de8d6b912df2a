// What is known about one key: a plain value that policy/breaker.h computes the next one of and
// store/ keeps. Nothing here reads a clock or decides. Times are Instants; store/ turns them into
// UTC and back at its edge. Instant{} means "never" and stays "never" through the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "policy/pace_memory.h"
#include "policy/policy.h"
#include "policy/time.h"
#include "policy/usual_rate.h"

namespace sluice {

// Values are on disk: never renumber.
enum class Phase : std::uint8_t { closed = 0, open = 1, half_open = 2 };

// Why a key was shut. Values are on disk: never renumber.
enum class Cause : std::uint8_t {
  none = 0,          // it is not shut
  named_time = 1,    // the origin said how long
  consecutive = 2,   // too many failures in a row
  window = 3,        // too many failures within a time
  anti_bot = 4,      // a block, not a rate
  probe_failed = 5,  // half-open, and the probe was refused or failed
  operator_act = 6,  // somebody ran `sluice open`
  no_credit = 7,     // the account has run out of money or quota
  anomaly = 8,       // our own word: something unusual went on
};

// The right to send one probe while half-open. It ends by itself, so that an owner who dies with
// it cannot keep the key shut.
struct ProbeLease {
  std::uint64_t id = 0;  // unique within its key, never 0
  Instant expires{};

  bool operator==(const ProbeLease&) const = default;
};

// Since the key was first seen. Lost in part by a crash: nothing is decided by them.
struct Counts {
  std::uint64_t success = 0;
  std::uint64_t neutral = 0;
  std::uint64_t rate_limited = 0;
  std::uint64_t anti_bot = 0;
  std::uint64_t server_error = 0;
  std::uint64_t network = 0;
  std::uint64_t local = 0;
  std::uint64_t refused = 0;  // requests that we did not let through
  std::uint64_t trips = 0;
  std::uint64_t junk = 0;  // rate-limit header values nobody could read

  bool operator==(const Counts&) const = default;
};

struct HostState {
  // Bounds of what is kept, whoever writes it.
  static constexpr std::size_t max_said = 500;
  static constexpr std::size_t max_reason = 200;
  static constexpr std::size_t max_window = kMaxWindowFailures;
  static constexpr std::size_t max_leases = 64;

  Phase phase = Phase::closed;
  Cause cause = Cause::none;
  std::uint16_t status = 0;  // the answer that shut it; 0: not an answer
  Instant opened_at{};       // the last trip
  Instant until{};           // the end of its cooldown
  Duration asked{};          // what the origin asked for, when that was longer than our cap; else 0
  Instant closed_at{};       // the last time traffic was let back in

  // Raised by every trip, and by an operator who clears the key. A request carries the epoch it was
  // sent in, so that a reply can be known to be from before.
  std::uint64_t epoch = 0;

  std::uint32_t level = 0;          // rungs climbed on `cooldown`
  std::uint32_t antibot_level = 0;  // rungs climbed on `antibot_cooldown`
  Instant calm_since{};             // decay counts from here, or from `until`: the last failure

  std::uint32_t consecutive = 0;      // failures in a row while closed
  std::uint32_t probe_successes = 0;  // of the `successes_to_close`, while half-open
  std::vector<Instant> window;        // failures that count for `window`, oldest first
  std::vector<ProbeLease> leases;     // probes on their way, while half-open
  std::uint64_t last_lease = 0;       // the id of the latest lease

  PaceMemory pace;           // what was learned about the key's limit
  std::uint32_t streak = 0;  // answers since the last failure

  UsualRate usual;  // how much it is used

  std::string reason;  // an operator's words, or what was unusual; empty otherwise
  std::string said;    // what the origin said when it shut us out, printable

  Counts counts;
  std::uint64_t version = 0;  // of the stored record; written by store/ only

  bool operator==(const HostState&) const = default;
};

}  // namespace sluice
