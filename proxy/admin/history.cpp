#include "proxy/admin/history.h"

#include <algorithm>
#include <limits>

#include "proxy/admin/key_table.h"

namespace sluice {
namespace {

std::uint32_t clamp(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

// A counter that went back was begun anew: all of it is new.
std::uint32_t grown(std::uint64_t before, std::uint64_t now) {
  return clamp(now >= before ? now - before : now);
}

std::vector<const KeyRow*> busiest(const std::vector<KeyRow>& rows, std::size_t count) {
  std::vector<const KeyRow*> out;
  out.reserve(rows.size());
  for (const KeyRow& row : rows) out.push_back(&row);
  const auto busier = [](const KeyRow* a, const KeyRow* b) {
    const std::uint64_t left = sent(a->counts) + a->counts.refused;
    const std::uint64_t right = sent(b->counts) + b->counts.refused;
    return left != right ? left > right : a->key < b->key;
  };
  if (out.size() > count) {
    std::nth_element(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count), out.end(),
                     busier);
    out.resize(count);
  }
  return out;
}

}  // namespace

History::Mark History::mark_of(const Counts& counts) {
  return {sent(counts), counts.refused, counts.rate_limited + counts.anti_bot};
}

History::Minute History::since(const Mark& before, const Mark& now, Duration delay) {
  return {grown(before.requests, now.requests), grown(before.refused, now.refused),
          grown(before.limited, now.limited),
          clamp(static_cast<std::uint64_t>(std::max(Duration(0), delay) / 1ms))};
}

void History::Ring::push(const Minute& minute) {
  minutes[next] = minute;
  next = (next + 1) % kMinutes;
  size = std::min(size + 1, kMinutes);
}

void History::sample(const std::vector<KeyRow>& rows, const Totals& totals) {
  const Mark all = mark_of(totals.outcomes);
  if (round_ > 0) all_.push(since(all_.mark, all, Duration(0)));  // before that, it is all old
  all_.mark = all;
  ++round_;
  for (const KeyRow* row : busiest(rows, kKeys)) {
    const Mark now = mark_of(row->counts);
    const auto [at, fresh] = rings_.try_emplace(row->key);
    Ring& ring = at->second;
    // Of one that was there before, but not among the busiest, the last minute is not known.
    if (!fresh || complete_) ring.push(since(ring.mark, now, row->delay));
    ring.mark = now;
    ring.round = round_;
  }
  complete_ = rows.size() <= kKeys;
  std::erase_if(rings_, [&](const auto& entry) { return entry.second.round != round_; });
}

History::Series History::unroll(const Ring& ring, const Minute& running) {
  Series out;
  const auto add = [&](const Minute& minute) {
    out.requests.push_back(minute.requests);
    out.refused.push_back(minute.refused);
    out.limited.push_back(minute.limited);
    out.delay_ms.push_back(minute.delay_ms);
  };
  const std::size_t size = std::min(ring.size, kMinutes - 1);
  for (std::size_t i = 0; i < size; ++i)
    add(ring.minutes[(ring.next + kMinutes - size + i) % kMinutes]);
  add(running);
  return out;
}

History::Series History::of(const KeyRow& row) const {
  const auto ring = rings_.find(std::string_view(row.key));
  if (ring == rings_.end() && !complete_) return {};
  if (ring == rings_.end()) return unroll({}, since({}, mark_of(row.counts), row.delay));
  return unroll(ring->second, since(ring->second.mark, mark_of(row.counts), row.delay));
}

History::Series History::of_all(const Totals& totals) const {
  return unroll(all_, since(all_.mark, mark_of(totals.outcomes), Duration(0)));
}

}  // namespace sluice
