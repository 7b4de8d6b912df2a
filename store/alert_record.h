// What one way of telling people about alerts has told and has still to tell, so that a restart
// neither repeats nor loses: the cursor in the ring of events and what waits are one record,
// written together.
#pragma once

#include <optional>
#include <string_view>

#include "policy/alert_outbox.h"
#include "store/clock_pair.h"
#include "store/store.h"

namespace sluice {

inline constexpr std::string_view kAlertPrefix = "alerts/";

// Answered with 1.
void save_outbox(Store& store, std::string_view channel, const Outbox& box, const ClockPair& now,
                 Completion done);

// None: nothing was ever told this way, or what is stored cannot be read.
Result<std::optional<Outbox>> load_outbox(Store& store, std::string_view channel,
                                          const ClockPair& now);

}  // namespace sluice
