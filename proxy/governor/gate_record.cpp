#include "proxy/governor/gate_record.h"

#include <iterator>
#include <utility>

#include "policy/host_merge.h"

namespace sluice {

void GateRecord::read_first(const HostState& stored, std::uint64_t store_version) {
  known_ = true;
  seen_ = store_version;
  base_ = stored;
}

bool GateRecord::is_news(const HostState& stored, std::uint64_t store_version) {
  if (saving_) return false;
  seen_ = store_version;
  // Read before our own last write, or swept away: we know it better.
  return stored.version > base_.version;
}

HostState GateRecord::merge(HostState ours, const HostState& stored) {
  HostState both = merged(base_, std::move(ours), stored);
  base_ = stored;
  dirty_ |= !(both == stored);
  return both;
}

void GateRecord::wait_for_it(std::shared_ptr<Visitor> told) {
  (tighter_next_ ? next_ : now_).told.push_back(std::move(told));
}

bool GateRecord::begin(const HostState& state) {
  if (saving_) {
    save_again_ = true;
    return false;
  }
  saving_ = true;
  dirty_ = false;
  tighter_now_ = std::exchange(tighter_next_, false);
  now_ = std::exchange(next_, {});
  writing_ = std::make_unique<HostState>(state);
  return true;
}

bool GateRecord::begin_flush(const HostState& state) {
  if (!dirty_ || saving_ || !known_) return false;
  saving_ = true;
  dirty_ = false;
  writing_ = std::make_unique<HostState>(state);
  return true;
}

GateRecord::Due GateRecord::end(const Result<std::uint64_t>& version) {
  saving_ = false;
  lost_tighter_ = std::exchange(tighter_now_, false);
  if (version && *version > 0) {
    base_ = std::move(*writing_);
    base_.version = *version;
  } else {
    dirty_ = true;
  }
  writing_.reset();
  return std::exchange(now_, {});
}

std::vector<GateRecord::Claim> GateRecord::lose(Due waited) {
  next_.told.insert(next_.told.end(), waited.told.begin(), waited.told.end());
  tighter_next_ |= lost_tighter_;
  std::vector<Claim> claims = std::move(waited.claims);
  std::move(next_.claims.begin(), next_.claims.end(), std::back_inserter(claims));
  next_.claims.clear();
  return claims;
}

bool GateRecord::wants_write() {
  const bool again = std::exchange(save_again_, false);
  return again || tighter_next_ || !next_.told.empty();
}

}  // namespace sluice
