// When the latest requests to a key went out, for rules of the kind "n in any w". Bounded: requests
// that go close together share an entry, which counts as late as its last one, so the answer is
// never too early. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/time.h"

namespace sluice {

class PaceLog {
 public:
  static constexpr std::size_t capacity = 192;

  // `grain` is how close together requests must be to share an entry when room is short.
  void add(Instant at, Duration grain);
  // The request that went at that time was refused: it used nothing up.
  void remove(Instant at);
  void clear() { *this = {}; }

  // How many went after `since`.
  std::uint32_t after(Instant since) const;
  // When the n-th latest went; Instant::min() when there were fewer.
  Instant nth_latest(std::uint32_t n) const;
  // `n` requests, the last of them at that time: what is assumed after a restart.
  void assume(Instant at, std::uint32_t n);

  // From the latest backwards; i < size().
  struct Entry {
    Instant at{};
    std::uint32_t count = 0;
    bool operator==(const Entry&) const = default;
  };
  std::size_t size() const { return entries_.size(); }
  const Entry& latest(std::size_t i) const { return entries_[place(i)]; }

  bool operator==(const PaceLog&) const = default;

 private:
  Entry& latest(std::size_t i) { return entries_[place(i)]; }
  std::size_t place(std::size_t i) const {
    const std::size_t size = entries_.size();
    const std::size_t end = size < capacity ? size : end_;
    return end > i ? end - 1 - i : end + size - 1 - i;
  }
  void push(Entry entry);

  std::vector<Entry> entries_;  // grows up to `capacity`, then the oldest makes room
  std::size_t end_ = 0;         // behind the latest, once it is full
  Instant begun_{};             // when the first of the latest entry went
};

}  // namespace sluice
