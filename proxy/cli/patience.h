// A process that was stopped in the middle of a write keeps every other one out of the store, for
// as long as it is: whoever waits for it may give up. The command's own thread only.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace sluice {

// What the task gives; none: it is not over by then. It goes on in that case, on a thread that
// nobody can join and with all it refers to, so all that is left to do is to leave().
template <class Task>
std::optional<std::invoke_result_t<Task>> within(std::chrono::seconds patience, Task task) {
  std::packaged_task<std::invoke_result_t<Task>()> packaged(std::move(task));
  auto future = packaged.get_future();
  std::thread(std::move(packaged)).detach();
  if (future.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return future.get();
}

// Ends the process without waiting for any of its threads.
[[noreturn]] void leave(int exit_code);

}  // namespace sluice
