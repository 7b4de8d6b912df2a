// Every gate by its key. Split into shards with a lock each, so that threads that ask about
// different keys seldom meet. Any thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
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
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const noexcept {
      return std::hash<std::string_view>{}(key);
    }
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<Gate>, Hash, std::equal_to<>> gates;
  };
  Shard& shard(std::string_view key) { return shards_[Hash{}(key) % shards_.size()]; }
  std::vector<std::shared_ptr<Gate>> all_of(Shard& shard);

  Allowances* const allowances_;
  AnomalyWatch* const watch_;
  std::array<Shard, 64> shards_;
};

}  // namespace sluice
