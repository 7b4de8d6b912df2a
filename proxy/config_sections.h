// The sections of sluice.toml, read from one TOML text over a Config that stands. Checks each value
// by itself; what needs the whole (an open proxy, a port in use) is checked by who uses it.
#pragma once

#include "policy/policy.h"
#include "policy/toml_table.h"
#include "proxy/config.h"

namespace sluice {

// Reads and finishes the document; what is wrong is in its problems(). `base`: [defaults].
void read_sections(TomlDocument& document, Config& config, Policy& base);

}  // namespace sluice
