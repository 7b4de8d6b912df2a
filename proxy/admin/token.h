// The secret that lets somebody in: 32 random bytes as hex in `admin.token` of the state directory,
// readable by its owner only. Made on the first start, then kept. Start-up only.
#pragma once

#include <string>

#include "policy/result.h"

namespace sluice {

// Refuses a file that others can read, or that holds something too short to be a secret.
Result<std::string> read_or_make_token(const std::string& state_directory);

}  // namespace sluice
