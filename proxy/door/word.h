// What is said at the door between `sluice exec` and the proxy, one line each way. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/job.h"
#include "proxy/exec_run.h"

namespace sluice {

inline constexpr std::size_t kWordLimit = 256;  // bytes of a line

// Exec's first word: whose clients it brings.
std::string introduction(const ExecRun& run);
std::optional<ExecRun> read_introduction(std::string_view line);

// The proxy's last one: what the run came to.
std::string farewell(const JobState& state);
std::optional<JobState> read_farewell(std::string_view line);

}  // namespace sluice
