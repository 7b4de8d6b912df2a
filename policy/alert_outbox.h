// Which alerts are told when: the same thing once within a while, not too many at once, and again
// later when the receiver did not take them. Every alert that goes in comes out, in a message or
// among those given up; none is lost without a word. Pure: time and chance are passed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "policy/alert.h"
#include "policy/time.h"

namespace sluice {

struct AlertRules {
  Duration repeat = 5min;         // the same kind and key: once within this, then with a count
  unsigned per_hour = 120;        // messages, beyond the first `burst`
  unsigned burst = 10;            // messages at once
  Duration give_up = 1h;          // an alert that nobody took for so long
  std::size_t most_waiting = 50;  // with their words; beyond: only their number
};

struct Outbox {
  struct Waiting {
    Alert alert;
    Instant since{};  // when the first of them came
    bool operator==(const Waiting&) const = default;
  };
  struct Told {
    std::uint64_t name = 0;  // a hash of what it was about
    Instant at{};
    bool operator==(const Told&) const = default;
  };
  static constexpr std::size_t max_told = 500;

  std::uint64_t cursor = 0;  // the last event that was looked at
  std::vector<Waiting> waiting;
  std::vector<Told> told;  // within `repeat`
  std::uint64_t more = 0;  // came while `waiting` was full
  Instant more_since{};

  // Of this process only: not kept in the store.
  double spent = 0;  // messages that count against the burst
  Instant spent_at{};
  unsigned tries = 0;  // in a row that failed
  Instant next_try{};

  bool operator==(const Outbox&) const = default;
};

void take(const AlertRules& rules, Outbox& box, Alert alert, Instant now);

// What to send now; none: nothing yet.
std::optional<AlertMessage> due(const AlertRules& rules, const Outbox& box, Instant now);

// The receiver has taken it.
void delivered(const AlertRules& rules, Outbox& box, const AlertMessage& message, Instant now);

// It has not. `asked`: how long the receiver wants to be left alone; 0: it did not say. `jitter`
// from 0 to 1.
void put_off(Outbox& box, Instant now, Duration asked, double jitter);

// It will never take this one: it is taken out as if it had been told.
void discard(const AlertRules& rules, Outbox& box, const AlertMessage& message, Instant now);

// Takes out what has waited too long, to be complained about.
std::optional<AlertMessage> give_up(const AlertRules& rules, Outbox& box, Instant now);

std::uint64_t waiting_count(const Outbox& box);

}  // namespace sluice
