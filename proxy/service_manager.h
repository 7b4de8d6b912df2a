// What the daemon and the service manager that started it (systemd) say to each other, by
// sd_notify(3). Says nothing when nobody listens. Main thread.
#pragma once

#include <optional>
#include <string>

#include "policy/time.h"

namespace sluice::service_manager {

void ready(const std::string& status);  // also the end of reloading()
void reloading(Instant now);
void stopping(Duration at_most);  // asks for that much time, should the unit's own be less
void alive();                     // to be said every watchdog_period()

std::optional<Duration> watchdog_period();  // nothing: nobody watches

}  // namespace sluice::service_manager
