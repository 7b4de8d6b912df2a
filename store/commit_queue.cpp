#include "store/commit_queue.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace sluice {

CommitQueue::CommitQueue(Commit commit, Idle idle)
    : commit_(std::move(commit)), idle_(std::move(idle)), thread_([this] { run(); }) {}

CommitQueue::~CommitQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void CommitQueue::push(Write write) {
  std::unique_lock lock(mutex_);
  if (waiting_.size() >= kMaxWaiting) {
    lock.unlock();
    return complete(write.done, Error{"too many writes are waiting for the store"});
  }
  waiting_.push_back(std::move(write));
  lock.unlock();
  wake_.notify_one();
}

void CommitQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_for(lock, std::chrono::seconds(1), [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty() && ending_) return;
    std::vector<Write> batch = next_batch();
    lock.unlock();
    if (batch.empty()) {
      idle_();
    } else {
      finish(std::move(batch));
    }
    lock.lock();
  }
}

std::vector<Write> CommitQueue::next_batch() {
  const auto count = std::min(waiting_.size(), kMaxBatch);
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Write> batch(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return batch;
}

void CommitQueue::finish(std::vector<Write> batch) {
  const std::optional<Error> failure = commit_(batch);
  for (Write& write : batch) {
    if (failure) write.answer = *failure;
    complete(write.done, std::move(write.answer));
  }
}

}  // namespace sluice
