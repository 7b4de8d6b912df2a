#include "proxy/service_manager.h"

#include <systemd/sd-daemon.h>

namespace sluice::service_manager {
namespace {

constexpr Duration kToEnd = 5s;  // from the end of the drain to the end of the process
constexpr int kPingsPerWatch = 3;

std::string microseconds(Duration duration) { return std::to_string(duration / 1us); }

}  // namespace

void ready(const std::string& status) { sd_notify(0, ("READY=1\nSTATUS=" + status).c_str()); }

// MONOTONIC_USEC is for Type=notify-reload, of systemd 253 and later.
void reloading(Instant now) {
  sd_notify(0, ("RELOADING=1\nMONOTONIC_USEC=" + microseconds(now.time_since_epoch())).c_str());
}

void stopping(Duration at_most) {
  sd_notify(0, ("STOPPING=1\nSTATUS=finishing requests under way\nEXTEND_TIMEOUT_USEC=" +
                microseconds(at_most + kToEnd))
                   .c_str());
}

void alive() { sd_notify(0, "WATCHDOG=1"); }

std::optional<Duration> watchdog_period() {
  std::uint64_t limit;
  if (sd_watchdog_enabled(0, &limit) <= 0) return std::nullopt;
  return std::chrono::microseconds(limit / kPingsPerWatch);
}

}  // namespace sluice::service_manager
