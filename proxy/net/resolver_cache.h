// What DNS said lately, names that do not exist included. Bounded: the entry written longest ago
// leaves first. Belongs to one resolver.
#pragma once

#include <list>
#include <string>
#include <string_view>

#include "policy/time.h"
#include "proxy/net/host_name.h"
#include "proxy/net/resolver.h"

namespace sluice {

class ResolverCache {
 public:
  static constexpr Duration shortest_ttl = 1s, longest_ttl = 300s;
  static constexpr Duration missing_ttl = 5s;  // no such name; RFC 2308 would allow longer
  static constexpr Duration failure_ttl = 1s;  // the server could not say
  static constexpr std::size_t max_entries = 4096;

  const Resolution* find(std::string_view key, Instant now) const;
  // `expires` is for addresses; how long a failure is believed is decided here.
  void put(const std::string& key, Resolution resolution, Instant expires, Instant now);
  static Duration clamped(Duration ttl);
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Resolution resolution;
    Instant expires{};
    std::list<std::string>::iterator place;
  };
  NameMap<Entry> entries_;
  std::list<std::string> by_age_;  // the oldest first
};

}  // namespace sluice
