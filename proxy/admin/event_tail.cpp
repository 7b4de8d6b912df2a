#include "proxy/admin/event_tail.h"

#include <algorithm>
#include <utility>

namespace sluice {

void EventTail::poll() {
  for (bool more = true; more;) {
    auto page = source_.events(last_, kPage);
    if (!page) return;  // the store's health says why, in its own place
    more = page->size() == kPage;
    for (StoredEvent& event : *page) {
      last_ = event.sequence;
      events_.push_back(std::move(event));
    }
    while (events_.size() > kKept) events_.pop_front();
  }
}

std::vector<StoredEvent> EventTail::latest(std::size_t limit, std::string_view key) const {
  std::vector<StoredEvent> out;
  for (auto event = events_.rbegin(); event != events_.rend() && out.size() < limit; ++event)
    if (key.empty() || event->event.key == key) out.push_back(*event);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<StoredEvent> EventTail::after(std::uint64_t sequence, std::size_t limit) {
  if (sequence >= last_) return {};
  auto page = source_.events(sequence, limit);
  return page ? std::move(*page) : std::vector<StoredEvent>();
}

}  // namespace sluice
