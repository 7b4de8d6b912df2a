#include "store/sweep.h"

#include <utility>

#include "store/counter.h"
#include "store/hosts.h"
#include "store/job_record.h"
#include "store/lease.h"
#include "store/limit_record.h"

namespace sluice {
namespace {

bool is_idle(const Entry& entry, const ClockPair& now, Duration age) {
  const std::string_view key = entry.key;
  if (key.starts_with(kCounterPrefix)) return counter_is_over(entry.value, now.utc);
  if (key.starts_with(kLimitPrefix)) return limits_are_over(entry.value, now);
  if (key.starts_with(kJobPrefix)) return job_is_over(entry.value, now, age);
  if (key.starts_with(kLeasePrefix)) return lease_is_over(entry.value, now);
  if (!key.starts_with(kHostPrefix)) return false;
  const auto record = decode_host(entry.value, now, Duration::max());
  if (!record || now.mono - record->saved < age) return false;
  return record->state.phase == Phase::closed || now.mono - record->state.until >= age;
}

}  // namespace

Result<std::size_t> Sweep::step(const ClockPair& now, Duration age, std::size_t limit) {
  auto page = store_.scan("", after_, limit);
  if (!page) return Error{page.error()};
  std::size_t removed = 0;
  for (Entry& entry : page->entries) {
    after_ = entry.key;
    if (!is_idle(entry, now, age)) continue;
    // Only if nobody has written to it since.
    store_.compare_and_set(std::move(entry.key), std::move(entry.value), std::nullopt, {});
    ++removed;
  }
  if (!page->more) after_.clear();
  return removed;
}

}  // namespace sluice
