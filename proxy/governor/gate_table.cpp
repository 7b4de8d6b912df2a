#include "proxy/governor/gate_table.h"

namespace sluice {

std::shared_ptr<Gate> GateTable::find(std::string_view key) {
  Shard& mine = shard(key);
  const std::lock_guard guard(mine.mutex);
  const auto found = mine.gates.find(key);
  return found == mine.gates.end() ? nullptr : found->second;
}

std::shared_ptr<Gate> GateTable::find_or_make(std::string_view key) {
  Shard& mine = shard(key);
  const std::lock_guard guard(mine.mutex);
  const auto found = mine.gates.find(key);
  if (found != mine.gates.end()) return found->second;
  auto gate = std::make_shared<Gate>(std::string(key), allowances_, watch_);
  mine.gates.emplace(key, gate);
  return gate;
}

std::vector<std::shared_ptr<Gate>> GateTable::all_of(Shard& shard) {
  const std::lock_guard guard(shard.mutex);
  std::vector<std::shared_ptr<Gate>> out;
  out.reserve(shard.gates.size());
  for (const auto& [key, gate] : shard.gates) out.push_back(gate);
  return out;
}

void GateTable::for_each(const std::function<void(Gate&)>& visit) {
  for (Shard& shard : shards_) {
    for (const auto& gate : all_of(shard)) visit(*gate);
  }
}

void GateTable::remove_idle(Instant now, Duration quiet) {
  for (Shard& shard : shards_) {
    const std::lock_guard guard(shard.mutex);
    // One that somebody else holds is about to be used.
    std::erase_if(shard.gates, [&](const auto& entry) {
      return entry.second.use_count() == 1 && entry.second->is_idle(now, quiet);
    });
  }
}

std::size_t GateTable::size() {
  std::size_t count = 0;
  for (Shard& shard : shards_) {
    const std::lock_guard guard(shard.mutex);
    count += shard.gates.size();
  }
  return count;
}

}  // namespace sluice
