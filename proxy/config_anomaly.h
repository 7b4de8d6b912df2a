// The section [anomaly] of sluice.toml, read over rules that stand.
#pragma once

#include "policy/anomaly.h"
#include "policy/toml_table.h"

namespace sluice {

void read_anomaly(const TomlTable& anomaly, AnomalyRules& rules);

}  // namespace sluice
