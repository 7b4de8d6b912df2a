// adapt = "linear": +step on each 429 up to cap, −step after recover_after successes in a row. A
// 429 right after such a step takes it back, and the delay is not lowered under that again.
#include <algorithm>

#include "policy/pace_models.h"

namespace sluice::pace {

void linear_refused(const PaceRules& rules, PaceState& state, Instant now,
                    const PaceTicket& ticket) {
  PaceMemory& learned = state.learned;
  if (learned.delay == Duration(0)) learned.cap = ticket.crowd;
  const Duration most = std::max(Duration(0), rules.cap - rules.min_delay);
  learned.delay = std::min(most, learned.delay + rules.step);
  if (learned.lowered) learned.delay_floor = std::max(learned.delay_floor, learned.delay);
  learned.lowered = false;
  learned.streak = 0;
  ++learned.refusals;
  learned.learned_at = now;
  state.flight.spaced_from = now;  // also the next one waits for the new delay
}

void linear_succeeded(const PaceRules& rules, PaceState& state, Instant now) {
  PaceMemory& learned = state.learned;
  if (learned.delay == Duration(0) && !learned.lowered) return;
  if (++learned.streak < rules.recover_after) return;
  learned.streak = 0;
  const Duration lower = std::max({Duration(0), learned.delay - rules.step, learned.delay_floor});
  learned.lowered = lower < learned.delay;
  learned.delay = lower;
  learned.learned_at = now;
  if (lower == Duration(0)) learned.cap = 0;
}

}  // namespace sluice::pace
