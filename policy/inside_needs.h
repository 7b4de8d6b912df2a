// What a policy says about single requests. Of HTTPS that nobody looks into only the CONNECT is
// seen, so there it does nothing, or less than it seems to. Pure.
#pragma once

#include <string>
#include <vector>

#include "policy/policy.h"

namespace sluice {

// The names of such settings, as they are written; empty: there are none.
std::vector<std::string> inside_needs(const Policy& policy);

}  // namespace sluice
