// Which events somebody must be told of. Pure.
#pragma once

#include <optional>

#include "policy/alert.h"
#include "store/event.h"

namespace sluice {

// None: it is for the record only.
std::optional<Alert> alert_of(const Event& event);

}  // namespace sluice
