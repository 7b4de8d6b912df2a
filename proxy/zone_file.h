// Reads a zone of the system's time zone database. Touches the disk: at start-up only.
#pragma once

#include <string>

#include "policy/zone.h"

namespace sluice {

// "UTC", or a name such as "Europe/Berlin".
Result<Zone> load_zone(const std::string& name);

}  // namespace sluice
