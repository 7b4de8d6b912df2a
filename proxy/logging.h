// Sets up the program's own log: asynchronous, to stderr, as text or as JSON lines; for the
// journal, which has its own clock, with a priority instead of a time. Called once before any
// thread logs; the access log shares its thread.
#pragma once

#include <string>

#include "proxy/config.h"

namespace sluice {

// `journal_stream`: $JOURNAL_STREAM.
void start_logging(const LogConfig& config, const std::string& journal_stream);
void end_logging();  // writes what is waiting

}  // namespace sluice
