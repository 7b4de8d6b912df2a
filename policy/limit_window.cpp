#include "policy/limit_window.h"

#include <algorithm>

namespace sluice {
namespace {

const LimitWindow* find_window(const LimitHistory& history, Duration per) {
  const auto at = std::find_if(history.begin(), history.end(),
                               [per](const LimitWindow& window) { return window.per == per; });
  return at == history.end() ? nullptr : &*at;
}

bool counts(const LimitSlot& slot, Duration per, Instant now) { return slot.last + per > now; }

bool speaks_of(const std::vector<RequestLimit>& limits, Duration per) {
  return std::any_of(limits.begin(), limits.end(),
                     [per](const RequestLimit& limit) { return limit.per == per; });
}

// What is over goes, and where room is short, windows that no limit speaks of any more.
void forget(const std::vector<RequestLimit>& limits, LimitHistory& history, Instant now) {
  for (LimitWindow& window : history) {
    std::erase_if(window.slots,
                  [&](const LimitSlot& slot) { return !counts(slot, window.per, now); });
  }
  const bool short_of_room = history.size() + limits.size() > kMaxLimitWindows;
  std::erase_if(history, [&](const LimitWindow& window) {
    return window.slots.empty() || (short_of_room && !speaks_of(limits, window.per));
  });
}

// With few requests each has a slot of its own and the window is exact; with many, a slot holds
// those of a 64th of the window, all of which count as long as the youngest.
Duration grain(const RequestLimit& limit) {
  return limit.count <= kMaxLimitSlots ? Duration(0) : limit.per / int{kMaxLimitSlots};
}

void enter(LimitWindow& window, const LimitSlot& slot, Duration grain) {
  if (!window.slots.empty()) {
    LimitSlot& youngest = window.slots.back();
    if (slot.last - youngest.first <= grain || slot.last == youngest.last) {
      youngest.first = std::min(youngest.first, slot.first);
      youngest.last = std::max(youngest.last, slot.last);
      youngest.count += slot.count;
      return;
    }
  }
  window.slots.push_back(slot);
  if (window.slots.size() <= kMaxLimitSlots) return;
  // Only with an `until` far ahead of the grain, or times that went back.
  LimitSlot& second = window.slots[1];
  const LimitSlot& oldest = window.slots[0];
  second.first = std::min(second.first, oldest.first);
  second.last = std::max(second.last, oldest.last);
  second.count += oldest.count;
  window.slots.erase(window.slots.begin());
}

std::uint64_t free_now(const RequestLimit& limit, const LimitHistory& history, Instant now) {
  const std::uint64_t taken = used(history, limit.per, now);
  return limit.count > taken ? limit.count - taken : 0;
}

}  // namespace

std::uint64_t used(const LimitHistory& history, Duration per, Instant now) {
  const LimitWindow* window = find_window(history, per);
  std::uint64_t total = 0;
  if (window == nullptr) return total;
  for (const LimitSlot& slot : window->slots) {
    if (counts(slot, per, now)) total += slot.count;
  }
  return total;
}

std::uint64_t take(const std::vector<RequestLimit>& limits, LimitHistory& history,
                   const LimitAsk& ask) {
  std::uint64_t granted = ask.want;
  for (const RequestLimit& limit : limits) {
    const std::uint64_t left = free_now(limit, history, ask.now);
    const std::uint64_t share =
        ask.needed && left > 0 ? std::max<std::uint64_t>(1, left / 2) : left / 2;
    granted = std::min(granted, share);
  }
  if (granted == 0) return 0;
  forget(limits, history, ask.now);
  for (auto limit = limits.begin(); limit != limits.end(); ++limit) {
    if (speaks_of({limits.begin(), limit}, limit->per)) continue;  // one length twice: entered
    auto at = std::find_if(history.begin(), history.end(),
                           [&](const LimitWindow& window) { return window.per == limit->per; });
    if (at == history.end()) at = history.insert(at, LimitWindow{limit->per, {}});
    enter(*at, {ask.now, ask.until, granted}, grain(*limit));
  }
  return granted;
}

void give_back(const std::vector<RequestLimit>& limits, LimitHistory& history, Instant until,
               std::uint64_t count) {
  for (LimitWindow& window : history) {
    if (!speaks_of(limits, window.per)) continue;
    // From the slot that ends first of those it can be in: what another slot then has too many of
    // counts for longer, never for shorter.
    std::stable_sort(window.slots.begin(), window.slots.end(),
                     [](const LimitSlot& a, const LimitSlot& b) { return a.last < b.last; });
    std::uint64_t left = count;
    for (LimitSlot& slot : window.slots) {
      if (slot.first > until || slot.last < until) continue;
      const std::uint64_t given = std::min(left, slot.count);
      slot.count -= given;
      left -= given;
    }
    std::erase_if(window.slots, [](const LimitSlot& slot) { return slot.count == 0; });
  }
}

Instant next_free(const std::vector<RequestLimit>& limits, const LimitHistory& history,
                  Instant now) {
  Instant free_at = now;
  for (const RequestLimit& limit : limits) {
    const LimitWindow* window = find_window(history, limit.per);
    if (window == nullptr) continue;
    std::vector<LimitSlot> slots = window->slots;
    std::sort(slots.begin(), slots.end(),
              [](const LimitSlot& a, const LimitSlot& b) { return a.last < b.last; });
    std::uint64_t counting = used(history, limit.per, now);
    for (const LimitSlot& slot : slots) {
      if (counting < limit.count) break;
      if (!counts(slot, limit.per, now)) continue;
      counting -= slot.count;
      free_at = std::max(free_at, slot.last + limit.per);
    }
  }
  return free_at;
}

}  // namespace sluice
