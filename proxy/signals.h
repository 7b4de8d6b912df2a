// The signals that steer the daemon: SIGTERM and SIGINT stop it, SIGHUP reloads. Blocked in every
// thread and waited for by the main one, so none of them ever runs a handler or its default action.
// A child process inherits the mask: whoever starts one must clear it there.
#pragma once

#include "policy/time.h"

namespace sluice {

// Before any thread starts, the log's included: they inherit it.
void take_over_signals();

enum class SteeringSignal { none, stop, reload };

// The next one, or none when nothing came in time.
SteeringSignal next_signal(Duration at_most);

}  // namespace sluice
