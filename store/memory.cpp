#include "store/memory.h"

#include <algorithm>
#include <utility>

namespace sluice {

Result<ReadValue> MemoryStore::get(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return ReadValue{std::nullopt, version_};
  return ReadValue{found->second, version_};
}

Result<Page> MemoryStore::scan(std::string_view prefix, std::string_view after, std::size_t limit) {
  limit = std::min(limit, kMaxPageEntries);
  const std::lock_guard lock(mutex_);
  Page page;
  auto at = after < prefix ? values_.lower_bound(prefix) : values_.upper_bound(after);
  for (; at != values_.end() && at->first.starts_with(prefix); ++at) {
    if (page.entries.size() == limit) {
      page.more = true;
      break;
    }
    page.entries.push_back({at->first, at->second});
  }
  return page;
}

Result<std::vector<StoredEvent>> MemoryStore::events(std::uint64_t after, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  const auto first =
      std::upper_bound(events_.begin(), events_.end(), after,
                       [](std::uint64_t n, const StoredEvent& e) { return n < e.sequence; });
  const auto count = std::min<std::size_t>(limit, events_.end() - first);
  return std::vector<StoredEvent>(first, first + static_cast<std::ptrdiff_t>(count));
}

std::uint64_t MemoryStore::version() { return version_; }

Health MemoryStore::health() { return {}; }

Result<std::uint64_t> MemoryStore::apply(const std::string& key, const Edit& edit) {
  if (auto problem = key_problem(key)) return *problem;
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  std::optional<std::string_view> current;
  if (found != values_.end()) current = found->second;
  Change change = edit(current);
  if (change.kind == Change::Kind::put) {
    if (auto problem = value_problem(change.value)) return *problem;
    values_.insert_or_assign(key, std::move(change.value));
    if (change.news) ++version_;
  } else if (change.kind == Change::Kind::erase && current) {
    values_.erase(found);
    if (change.news) ++version_;
  }
  return change.answer;
}

void MemoryStore::update(std::string key, Edit edit, Completion done) {
  complete(done, apply(key, edit));
}

void MemoryStore::append(const Event& event, Completion done) {
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t sequence = events_.empty() ? 1 : events_.back().sequence + 1;
    events_.push_back({sequence, event});
    for (std::string* text : {&events_.back().event.key, &events_.back().event.text})
      text->resize(std::min(text->size(), kMaxEventText));
    if (events_.size() > kMaxEvents) events_.pop_front();
  }
  complete(done, std::uint64_t{0});
}

}  // namespace sluice
