// Group commit: writes of all threads wait here, one thread makes as many of them durable at once
// as have gathered while the last ones were, and then answers them. Knows nothing of the engine.
// push() is for any thread and never waits for a disk; everything else happens on the queue's own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/store.h"

namespace sluice {

struct Write {
  std::string key;
  Edit edit;          // empty: an event to append
  std::string event;  // its bytes
  Completion done;
  Result<std::uint64_t> answer = std::uint64_t{0};  // filled in by the commit
};

class CommitQueue {
 public:
  // Makes all of them durable and fills in their answers, or none and says why.
  using Commit = std::function<std::optional<Error>(std::vector<Write>&)>;
  // Called about once a second while there is nothing to write.
  using Idle = std::function<void()>;

  static constexpr std::size_t kMaxWaiting = 100'000;  // beyond: answered with an error at once
  static constexpr std::size_t kMaxBatch = 4096;

  CommitQueue(Commit commit, Idle idle);
  ~CommitQueue();  // makes durable what was pushed before, then ends
  CommitQueue(const CommitQueue&) = delete;
  CommitQueue& operator=(const CommitQueue&) = delete;

  void push(Write write);

 private:
  void run();
  std::vector<Write> next_batch();  // with the lock held
  void finish(std::vector<Write> batch);

  const Commit commit_;
  const Idle idle_;
  std::mutex mutex_;  // guards the two below
  std::deque<Write> waiting_;
  bool ending_ = false;
  std::condition_variable wake_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace sluice
