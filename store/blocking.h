// Waits for a write to be durable: for the command line and tests. Never on an event loop.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <utility>

#include "store/store.h"

namespace sluice {

// wait_for([&](Completion done) { store.put(key, value, std::move(done)); })
template <class Start>
Result<std::uint64_t> wait_for(Start start) {
  // Shared with the completion: the engine's thread may still be inside set_value() when the waiter
  // goes on.
  auto promise = std::make_shared<std::promise<Result<std::uint64_t>>>();
  auto future = promise->get_future();
  start(Completion{
      {}, [promise](Result<std::uint64_t> result) { promise->set_value(std::move(result)); }});
  return future.get();
}

}  // namespace sluice
