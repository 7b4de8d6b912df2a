// How one exchange with an origin ended, judged by policy/classify.h or by whoever saw the
// connection fail; what policy/breaker.h learns from. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policy/policy.h"
#include "policy/signal.h"
#include "policy/time.h"

namespace sluice {

// What a forwarded request carries until its outcome is known.
struct Ticket {
  std::uint64_t epoch = 0;  // of the key, when the request was sent
  std::uint64_t lease = 0;  // 0: not a probe
  bool operator==(const Ticket&) const = default;
};

struct Outcome {
  OutcomeKind kind = OutcomeKind::local;
  std::uint16_t status = 0;  // 0: there was no answer
  bool no_credit = false;    // rate-limited by money or a long quota: waiting briefly is no use
  bool amends = false;       // its head was observed before: this is what its body adds to that
  std::optional<Duration> wait{};  // how long the origin asked for; only with a failure
  std::string said{};              // by the origin; printable, at most HostState::max_said
  Signal signal{};
  Ticket ticket{};
  Instant sent{};  // when the request went; Instant{}: unknown
};

}  // namespace sluice
