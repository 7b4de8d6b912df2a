#include "policy/url_sketch.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace sluice {

UrlSketch::UrlSketch(std::size_t capacity, Duration within)
    : length_(std::max<Duration>(within / Duration::rep{kParts}, Duration(1))),
      buckets_(std::bit_ceil(std::max<std::size_t>(capacity / kPlaces, 1))) {}

// Counted from 1, so that 0 is never a time.
std::uint32_t UrlSketch::part_of(Instant now) const {
  const auto parts = std::max<Duration::rep>(now.time_since_epoch() / length_, 0);
  return static_cast<std::uint32_t>(parts % 0xffff'ffff) + 1;
}

// What was asked within the last eight parts, `part` being the last of them.
std::uint32_t UrlSketch::sum(const Entry& entry, std::uint32_t part) {
  if (entry.part == 0 || part - entry.part >= kParts) return 0;
  std::uint32_t sum = 0;
  for (std::uint32_t age = part - entry.part; age < kParts; ++age) {
    sum += entry.counts[(part - age) % kParts];
  }
  return sum;
}

void UrlSketch::forget_old(Entry& entry, std::uint32_t part) {
  const std::uint32_t passed = std::min<std::uint32_t>(part - entry.part, kParts);
  for (std::uint32_t i = 0; i < passed; ++i) entry.counts[(part - i) % kParts] = 0;
  entry.part = part;
}

std::uint32_t UrlSketch::add(std::uint64_t url, Instant now) {
  const std::uint32_t part = part_of(now);
  const auto tag = static_cast<std::uint32_t>(url);
  Bucket& bucket = buckets_[bucket_of(url)];
  for (Entry& entry : bucket.entries) {
    if (entry.tag != tag || entry.part == 0) continue;
    // A thread that read its clock a moment earlier.
    const std::uint32_t latest = std::max(part, entry.part);
    forget_old(entry, latest);
    std::uint8_t& count = entry.counts[latest % kParts];
    if (count < 0xff) ++count;
    return sum(entry, latest);
  }
  Entry& least = least_of(bucket, part);
  least = {.tag = tag, .part = part};
  least.counts[part % kParts] = 1;
  return 1;
}

UrlSketch::Entry& UrlSketch::least_of(Bucket& bucket, std::uint32_t part) {
  const auto worth = [&](const Entry& entry) { return std::pair(sum(entry, part), entry.part); };
  Entry* least = &bucket.entries.front();
  auto worth_of_least = worth(*least);
  for (Entry& entry : bucket.entries) {
    const auto own = worth(entry);
    if (own >= worth_of_least) continue;
    least = &entry;
    worth_of_least = own;
  }
  return *least;
}

void UrlSketch::fetch(std::uint64_t url) const {
  const auto& entries = buckets_[bucket_of(url)].entries;
  __builtin_prefetch(&entries.front(), 1);
  __builtin_prefetch(&entries.back(), 1);
}

std::uint32_t UrlSketch::count(std::uint64_t url, Instant now) const {
  for (const Entry& entry : buckets_[bucket_of(url)].entries) {
    if (entry.part != 0 && entry.tag == static_cast<std::uint32_t>(url)) {
      return sum(entry, std::max(part_of(now), entry.part));
    }
  }
  return 0;
}

}  // namespace sluice
