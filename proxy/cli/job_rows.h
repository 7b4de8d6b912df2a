// The jobs in `sluice status`: as the store remembers them, so that they show without a daemon.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proxy/cli/terminal.h"
#include "proxy/config.h"
#include "store/clock_pair.h"
#include "store/job_record.h"

namespace sluice {

// Those heard of within a day, the latest first, and of each the runs that go on together; empty:
// no job was.
std::string job_table(std::vector<ListedJob> jobs, const Config& config, const Terminal& terminal,
                      const ClockPair& now);

nlohmann::json job_json(const ListedJob& job, const JobsConfig& config, const ClockPair& now);

}  // namespace sluice
