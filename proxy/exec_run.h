// One run of `sluice exec`: what is known of every client that comes through its door, whatever the
// client itself says. Immutable, so any thread may read it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace sluice {

struct ExecRun {
  std::string job;                 // as job_name() makes them
  std::string run;                 // which run of the job: letters and digits, never empty
  std::uint64_t max_requests = 0;  // that it may make; 0: no limit
  bool numbered = false;           // nobody named the job: "curl-4711", another number each time
};
using ExecRunRef = std::shared_ptr<const ExecRun>;  // null: a client of nobody's run

}  // namespace sluice
