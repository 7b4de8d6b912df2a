// What a run of `sluice exec` has done, for its last line. Pure.
#pragma once

#include <string>

#include "policy/job.h"

namespace sluice {

std::string run_summary(const std::string& job, const JobState& state, const std::string& currency);

}  // namespace sluice
