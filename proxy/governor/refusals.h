// The refusals that the governor gives, with everything a person or a script needs to know: why,
// until when, and which command lifts it.
#pragma once

#include <string>
#include <string_view>

#include "proxy/governor/gate.h"
#include "proxy/refusal.h"
#include "store/clock_pair.h"

namespace sluice {

// By the budget, the breaker, `limits`, or the pace when the key is closed. `held`: it has waited
// for this.
Refusal not_now(Gate& gate, const Gate::Pass& pass, bool held, const ClockPair& now);
Refusal queue_full(const std::string& key, const Gate::View& view, const ClockPair& now);
Refusal store_unavailable(const std::string& key, const Gate::View& view, std::string_view why,
                          const ClockPair& now);

}  // namespace sluice
