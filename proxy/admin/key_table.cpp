#include "proxy/admin/key_table.h"

#include <algorithm>
#include <iterator>

#include "proxy/clock.h"

namespace sluice {

std::uint64_t sent(const Counts& counts) {
  return counts.success + counts.neutral + counts.rate_limited + counts.anti_bot +
         counts.server_error + counts.network + counts.local;
}

const std::vector<KeyRow>& KeyTable::rows() {
  const Instant now = monotonic_now();
  if (now >= due_) {
    copy();
    const Instant done = monotonic_now();
    due_ = done + std::max(kFresh, (done - now) * 10);
  }
  return rows_;
}

void KeyTable::copy() {
  rows_.clear();
  problem_.clear();
  for (bool more = true; more;) {
    auto page = source_.keys(rows_.empty() ? std::string_view() : rows_.back().key, kPage);
    if (!page) {
      problem_ = page.error();
      return;
    }
    more = page->more && !page->keys.empty();
    std::move(page->keys.begin(), page->keys.end(), std::back_inserter(rows_));
  }
}

}  // namespace sluice
