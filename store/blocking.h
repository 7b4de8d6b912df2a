// Waits for a write to be durable: for the command line, tests, and threads that nobody waits for.
// Never on an event loop.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "store/store.h"

namespace sluice {

// wait_for([&](Completion done) { store.put(key, value, std::move(done)); })
// With `most`: an error when it takes longer, whatever becomes of the write.
template <class Start>
Result<std::uint64_t> wait_for(Start start, std::optional<Duration> most = {}) {
  // Shared with the completion: the engine's thread may still be inside set_value() when the waiter
  // goes on.
  auto promise = std::make_shared<std::promise<Result<std::uint64_t>>>();
  auto future = promise->get_future();
  start(Completion{
      {}, [promise](Result<std::uint64_t> result) { promise->set_value(std::move(result)); }});
  if (most && future.wait_for(*most) != std::future_status::ready) {
    return Error{"the store does not answer"};
  }
  return future.get();
}

}  // namespace sluice
