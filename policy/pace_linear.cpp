// adapt = "linear": +step on each 429 up to cap, −step after recover_after successes in a row. A
// 429 right after such a step takes it back, and the delay is not lowered under that again.
#include <algorithm>

#include "policy/pace_models.h"

namespace sluice::pace {

void linear_refused(const PaceRules& rules, PaceMemory& learned) {
  const Duration most = std::max(Duration(0), rules.cap - rules.min_delay);
  learned.delay = std::min(most, learned.delay + rules.step);
  if (learned.lowered) learned.delay_floor = std::max(learned.delay_floor, learned.delay);
  learned.lowered = false;
  learned.streak = 0;
  ++learned.refusals;
}

void linear_succeeded(const PaceRules& rules, PaceMemory& learned) {
  if (learned.delay == Duration(0) && !learned.lowered) return;
  if (++learned.streak < rules.recover_after) return;
  learned.streak = 0;
  const Duration lower = std::max({Duration(0), learned.delay - rules.step, learned.delay_floor});
  learned.lowered = lower < learned.delay;
  learned.delay = lower;
}

}  // namespace sluice::pace
