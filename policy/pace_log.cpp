#include "policy/pace_log.h"

#include <algorithm>

namespace sluice {

void PaceLog::push(Entry entry) {
  if (entries_.size() < capacity) return entries_.push_back(entry);
  entries_[end_] = entry;
  end_ = (end_ + 1) % capacity;
}

void PaceLog::add(Instant at, Duration grain) {
  if (!entries_.empty() && at - begun_ < grain) {
    // The entry's earliest is forgotten, so what it holds counts longer: never too early.
    latest(0).at = std::max(latest(0).at, at);
    ++latest(0).count;
  } else {
    begun_ = at;
    push({at, 1});
  }
}

void PaceLog::remove(Instant at) {
  for (std::size_t i = size(); i-- > 0;) {  // the oldest entry that may hold it
    if (latest(i).at < at || latest(i).count == 0) continue;
    --latest(i).count;
    return;
  }
}

std::uint32_t PaceLog::after(Instant since) const {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < size() && latest(i).at > since; ++i) sum += latest(i).count;
  return sum;
}

Instant PaceLog::nth_latest(std::uint32_t n) const {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    sum += latest(i).count;
    if (sum >= n) return latest(i).at;
  }
  return Instant::min();
}

void PaceLog::assume(Instant at, std::uint32_t n) {
  if (n == 0) return;
  begun_ = at;
  push({at, n});
}

}  // namespace sluice
