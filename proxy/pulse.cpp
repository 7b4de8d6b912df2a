#include "proxy/pulse.h"

#include <algorithm>
#include <utility>

#include "proxy/clock.h"
#include "proxy/service_manager.h"

namespace sluice {
namespace {

constexpr Duration kUnwatched = 24h;  // nobody listens: the workers are asked, but hardly ever

}  // namespace

Pulse::Pulse(std::vector<Watchdog::Ask> workers)
    : watchdog_(std::move(workers)),
      period_(service_manager::watchdog_period().value_or(kUnwatched)),
      next_(monotonic_now() + period_) {}

Duration Pulse::until_next() const { return std::max<Duration>(0s, next_ - monotonic_now()); }

void Pulse::beat_if_due() {
  if (monotonic_now() < next_) return;
  next_ = monotonic_now() + period_;
  if (watchdog_.round()) service_manager::alive();
}

}  // namespace sluice
