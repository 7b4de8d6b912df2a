#include "proxy/watchdog.h"

#include <utility>

namespace sluice {

Watchdog::Watchdog(std::vector<Ask> workers)
    : workers_(std::move(workers)), missing_(std::make_shared<std::atomic<std::size_t>>(0)) {}

bool Watchdog::round() {
  if (missing_->load() != 0) return false;
  *missing_ = workers_.size();
  for (const Ask& ask : workers_) {
    ask([missing = missing_] { missing->fetch_sub(1); });
  }
  return true;
}

}  // namespace sluice
