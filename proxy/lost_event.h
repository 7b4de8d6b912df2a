// Events that somebody must hear of even when the store cannot hold them.
#pragma once

#include <functional>

#include "store/store.h"

namespace sluice {

// On the store's thread, and quick.
using OnLost = std::function<void(const Event& event)>;

// Appends it; `lost` hears of it when that fails. What `lost` needs must outlive the store.
inline void append_or(Store& store, const Event& event, const OnLost& lost) {
  if (!lost) return store.append(event, {});
  store.append(event, {{}, [event, lost](const Result<std::uint64_t>& kept) {
                         if (!kept) lost(event);
                       }});
}

}  // namespace sluice
