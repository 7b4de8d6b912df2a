// What a run of `sluice exec` has done, for its last line. Main thread only.
#pragma once

#include <optional>
#include <string>

#include "policy/job.h"
#include "store/store.h"

namespace sluice {

// Pure.
std::string run_summary(const std::string& job, const JobState& state, const std::string& currency);

// As it is written down, which a proxy does once a second and at its end. Nothing asked, nothing
// written.
JobState find_run(Store& store, const std::string& job, const std::string& run);

}  // namespace sluice
