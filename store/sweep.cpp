#include "store/sweep.h"

#include <algorithm>
#include <utility>

#include "store/anomaly_record.h"
#include "store/cost_record.h"
#include "store/counter.h"
#include "store/hosts.h"
#include "store/job_record.h"
#include "store/lease.h"
#include "store/limit_record.h"
#include "store/notice.h"

namespace sluice {
namespace {

constexpr Duration kWaryAge = 90 * 24h;

// A notice about a host that nothing is known of any more.
bool is_orphan(Store& store, std::string_view notice) {
  notice.remove_prefix(kNoticePrefix.size());
  if (!notice.starts_with(kSlowOpenNotice)) return false;
  notice.remove_prefix(kSlowOpenNotice.size());
  const auto host = store.get(std::string(kHostPrefix).append(notice));
  return host && !host->value;
}

bool is_idle(Store& store, const Entry& entry, const ClockPair& now, Duration age) {
  const std::string_view key = entry.key;
  if (key.starts_with(kCounterPrefix)) return counter_is_over(entry.value, now.utc);
  if (key.starts_with(kCostPrefix)) return costs_are_over(entry.value, now.utc);
  if (key.starts_with(kLimitPrefix)) return limits_are_over(entry.value, now);
  if (key.starts_with(kAnomalyPrefix)) return anomalies_are_over(entry.value, now);
  if (key.starts_with(kJobPrefix)) return job_is_over(entry.value, now, age);
  if (key.starts_with(kLeasePrefix)) return lease_is_over(entry.value, now);
  if (key.starts_with(kNoticePrefix)) return is_orphan(store, key);
  if (!key.starts_with(kHostPrefix)) return false;
  const auto record = decode_host(entry.value, now, Duration::max());
  if (!record || now.mono - record->saved < age) return false;
  const HostState& state = record->state;
  // A level takes days to go down, and a ban is remembered longest.
  const bool wary = state.level > 0 || state.antibot_level > 0 || state.pace.ban;
  if (wary && now.mono - record->saved < std::max(age, kWaryAge)) return false;
  return state.phase == Phase::closed || now.mono - state.until >= age;
}

}  // namespace

Result<std::size_t> Sweep::step(const ClockPair& now, Duration age, std::size_t limit) {
  auto page = store_.scan("", after_, limit);
  if (!page) return Error{page.error()};
  std::size_t removed = 0;
  for (Entry& entry : page->entries) {
    after_ = entry.key;
    if (!is_idle(store_, entry, now, age)) continue;
    // Only if nobody has written to it since.
    store_.compare_and_set(std::move(entry.key), std::move(entry.value), std::nullopt, {});
    ++removed;
  }
  if (!page->more) after_.clear();
  return removed;
}

}  // namespace sluice
