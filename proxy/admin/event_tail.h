// The latest events, so that "what happened last" needs no walk through the whole ring, and those
// who follow them cost one read for all when nothing is new. Admin thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "proxy/admin/source.h"

namespace sluice {

class EventTail {
 public:
  static constexpr std::size_t kKept = 1000;
  static constexpr std::size_t kPage = 500;

  explicit EventTail(AdminSource& source) : source_(source) {}

  void poll();  // takes in what is new
  std::uint64_t last() const { return last_; }

  // The latest ones, oldest first; an empty key: of all.
  std::vector<StoredEvent> latest(std::size_t limit, std::string_view key) const;
  // Those behind a sequence number, oldest first.
  std::vector<StoredEvent> after(std::uint64_t sequence, std::size_t limit);

 private:
  AdminSource& source_;
  std::deque<StoredEvent> events_;
  std::uint64_t last_ = 0;
};

}  // namespace sluice
