// The file EMERGENCY_STOP in the state directory: while it is there, nothing is forwarded, by
// whoever it was made and whether or not a daemon was running then. Any thread; waits for the disk,
// so never on an event loop.
#pragma once

#include <optional>
#include <string>

#include "policy/result.h"

namespace sluice {

inline constexpr const char* kStopFileName = "EMERGENCY_STOP";
inline constexpr std::size_t kMaxStopReason = 200;

// Makes the file, and the directory where it is missing; there after a power loss too. A second
// stop replaces the reason.
Result<bool> write_stop_file(const std::string& directory, const std::string& reason);

// True if there was one.
Result<bool> remove_stop_file(const std::string& directory);

// The reason, empty when none was given (`touch`); none: there is no stop. An error means that
// nobody can tell.
Result<std::optional<std::string>> read_stop_file(const std::string& directory);

}  // namespace sluice
