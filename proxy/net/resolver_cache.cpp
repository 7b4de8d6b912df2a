#include "proxy/net/resolver_cache.h"

#include <algorithm>
#include <utility>

namespace sluice {

const Resolution* ResolverCache::find(std::string_view key, Instant now) const {
  const auto found = entries_.find(key);
  return found != entries_.end() && now < found->second.expires ? &found->second.resolution
                                                                : nullptr;
}

Duration ResolverCache::clamped(Duration ttl) { return std::clamp(ttl, shortest_ttl, longest_ttl); }

void ResolverCache::put(const std::string& key, Resolution resolution, Instant expires,
                        Instant now) {
  if (resolution.status == Resolution::Status::not_found)
    expires = now + missing_ttl;
  else if (resolution.status != Resolution::Status::ok)
    expires = now + failure_ttl;
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() >= max_entries) {
      entries_.erase(by_age_.front());
      by_age_.pop_front();
    }
    found = entries_.emplace(key, Entry{}).first;
    found->second.place = by_age_.insert(by_age_.end(), key);
  }
  by_age_.splice(by_age_.end(), by_age_, found->second.place);
  found->second.resolution = std::move(resolution);
  found->second.expires = expires;
}

}  // namespace sluice
