#include "proxy/governor/gate_table.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

std::size_t hash_of(std::string_view key) { return std::hash<std::string_view>{}(key); }

}  // namespace

GateTable::Place& GateTable::Shard::place(std::size_t hash, std::string_view key) {
  const std::size_t mask = places.size() - 1;
  std::size_t at = hash / kShards & mask;
  for (; places[at].gate; at = (at + 1) & mask) {
    if (places[at].hash != hash) continue;
    places[at].gate->fetch();  // it is about to be asked
    if (places[at].gate->key() == key) break;
  }
  return places[at];
}

void GateTable::Shard::make_room() {
  if (2 * (taken + 1) <= places.size()) return;
  std::vector<Place> before(std::max<std::size_t>(8, 2 * places.size()));
  before.swap(places);
  for (Place& old : before) {
    if (old.gate) place(old.hash, old.gate->key()) = std::move(old);
  }
}

std::shared_ptr<Gate> GateTable::find(std::string_view key) {
  const std::size_t hash = hash_of(key);
  Shard& mine = shard(hash);
  const std::lock_guard guard(mine.mutex);
  return mine.places.empty() ? nullptr : mine.place(hash, key).gate;
}

std::shared_ptr<Gate> GateTable::find_or_make(std::string_view key) {
  const std::size_t hash = hash_of(key);
  Shard& mine = shard(hash);
  const std::lock_guard guard(mine.mutex);
  if (!mine.places.empty()) {
    if (const Place& found = mine.place(hash, key); found.gate) return found.gate;
  }
  mine.make_room();
  Place& free = mine.place(hash, key);
  free = {hash, std::make_shared<Gate>(std::string(key), allowances_, watch_)};
  ++mine.taken;
  return free.gate;
}

std::vector<std::shared_ptr<Gate>> GateTable::all_of(Shard& shard) {
  const std::lock_guard guard(shard.mutex);
  std::vector<std::shared_ptr<Gate>> out;
  out.reserve(shard.taken);
  for (const Place& place : shard.places) {
    if (place.gate) out.push_back(place.gate);
  }
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
    // All are placed anew: one that is taken out would leave a hole in the way to others.
    std::vector<Place> before = std::exchange(shard.places, {});
    shard.taken = 0;
    for (Place& old : before) {
      // One that somebody else holds is about to be used.
      if (!old.gate || (old.gate.use_count() == 1 && old.gate->is_idle(now, quiet))) continue;
      shard.make_room();
      shard.place(old.hash, old.gate->key()) = std::move(old);
      ++shard.taken;
    }
  }
}

std::size_t GateTable::size() {
  std::size_t count = 0;
  for (Shard& shard : shards_) {
    const std::lock_guard guard(shard.mutex);
    count += shard.taken;
  }
  return count;
}

}  // namespace sluice
