// A store that forgets everything when the process ends: for tests, and for traffic that goes on
// without a disk (`store.on_failure = "local"`). Any thread; one lock.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "store/store.h"

namespace sluice {

class MemoryStore : public Store {
 public:
  Result<ReadValue> get(std::string_view key) override;
  Result<Page> scan(std::string_view prefix, std::string_view after, std::size_t limit) override;
  Result<std::vector<StoredEvent>> events(std::uint64_t after, std::size_t limit) override;
  std::uint64_t version() override;
  Health health() override;
  void update(std::string key, Edit edit, Completion done) override;
  void append(const Event& event, Completion done) override;

 private:
  Result<std::uint64_t> apply(const std::string& key, const Edit& edit);

  std::mutex mutex_;  // guards the two below
  std::map<std::string, std::string, std::less<>> values_;
  std::deque<StoredEvent> events_;
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace sluice
