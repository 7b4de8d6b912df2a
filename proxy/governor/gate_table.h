// Every gate by its key. Split into shards with a lock each, so that threads that ask about
// different keys seldom meet. Each is a table with open addressing: among a hundred thousand keys a
// look-up costs what it must read, and that is one place and the gate. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/governor/gate.h"

namespace sluice {

class GateTable {
 public:
  GateTable(Allowances* allowances, AnomalyWatch* watch) : allowances_(allowances), watch_(watch) {}
  std::shared_ptr<Gate> find(std::string_view key);  // null: nobody has asked about it
  std::shared_ptr<Gate> find_or_make(std::string_view key);

  // A few at a time, so that no lock is held for long.
  void for_each(const std::function<void(Gate&)>& visit);
  void remove_idle(Instant now, Duration quiet);
  std::size_t size();

 private:
  struct Place {
    std::size_t hash = 0;
    std::shared_ptr<Gate> gate;  // null: it is free
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    std::vector<Place> places;  // none, or a power of two of them; at most half are taken
    std::size_t taken = 0;

    // Where the key is, or where it would be. Only while there are places.
    Place& place(std::size_t hash, std::string_view key);
    void make_room();
  };
  static constexpr std::size_t kShards = 64;
  Shard& shard(std::size_t hash) { return shards_[hash % kShards]; }
  std::vector<std::shared_ptr<Gate>> all_of(Shard& shard);

  Allowances* const allowances_;
  AnomalyWatch* const watch_;
  std::array<Shard, kShards> shards_;
};

}  // namespace sluice
