// How often each URL was asked for in the last minutes, in memory that never grows. A table of
// fingerprints with a few places for each; when they are taken, the URL that was asked for least,
// then longest ago, makes room. So the one error is the safe one: among very many different URLs a
// slow loop may be forgotten, but none is ever made up, save by two URLs with one fingerprint.
// One thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "policy/time.h"

namespace sluice {

class UrlSketch {
 public:
  // `capacity` URLs, rounded up; they are counted over `within`, in eighths of it, the running one
  // included: never longer than `within`, and at most an eighth shorter.
  UrlSketch(std::size_t capacity, Duration within);

  // How often this one was asked for, with this time. `url` is a hash of it, as good as random.
  std::uint32_t add(std::uint64_t url, Instant now);
  std::uint32_t count(std::uint64_t url, Instant now) const;
  // It is about to be counted, and in no cache yet.
  void fetch(std::uint64_t url) const;

  std::size_t bytes() const { return buckets_.size() * sizeof(Bucket); }

 private:
  static constexpr std::size_t kParts = 8, kPlaces = 8;
  struct Entry {
    std::uint32_t tag = 0;   // of its URL
    std::uint32_t part = 0;  // the latest in which it was asked for; 0: nobody's entry
    std::array<std::uint8_t, kParts> counts{};  // by part, modulo 8; they stop at 255
  };
  struct alignas(64) Bucket {  // whole lines of a cache
    std::array<Entry, kPlaces> entries;
  };

  std::uint32_t part_of(Instant now) const;
  std::size_t bucket_of(std::uint64_t url) const { return (url >> 32) & (buckets_.size() - 1); }
  static std::uint32_t sum(const Entry& entry, std::uint32_t part);
  static Entry& least_of(Bucket& bucket, std::uint32_t part);  // to make room
  static void forget_old(Entry& entry, std::uint32_t part);

  const Duration length_;  // of a part
  std::vector<Bucket> buckets_;
};

}  // namespace sluice
