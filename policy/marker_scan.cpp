#include "policy/marker_scan.h"

#include <algorithm>
#include <bit>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__)
#define SLUICE_HAS_AVX2 1
#include <immintrin.h>
#endif

namespace sluice {
namespace {

constexpr std::size_t most_text = 8 * 1024;  // keeps states within 15 bits

unsigned char lower(unsigned char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<unsigned char>(c | 0x20) : c;
}
unsigned char upper(unsigned char c) {
  return c >= 'a' && c <= 'z' ? static_cast<unsigned char>(c & ~0x20) : c;
}
std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(lower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

Result<std::shared_ptr<const MarkerSet>> MarkerSet::build(std::vector<BodyMarker> markers) {
  auto set = std::make_shared<MarkerSet>();
  set->markers_ = std::move(markers);
  if (auto added = set->add_patterns(); !added) return Error{added.error()};
  set->add_classes();
  set->add_trie();
  set->add_failures();
  set->add_filter();
  return std::shared_ptr<const MarkerSet>(std::move(set));
}

Result<bool> MarkerSet::add_patterns() {
  std::size_t total = 0;
  std::vector<std::string> gates;
  for (std::size_t i = 0; i < markers_.size(); ++i) {
    const BodyMarker& marker = markers_[i];
    if (marker.text.empty()) return Error{"a body marker needs a text"};
    Pattern pattern{.text = lower(marker.text), .status = StatusSet(marker.status)};
    pattern.marker = static_cast<std::uint16_t>(i);
    if (!marker.after.empty()) {
      const auto gate = lower(marker.after);
      auto known = std::find(gates.begin(), gates.end(), gate);
      if (known == gates.end()) {
        if (gates.size() == 32) return Error{"too many body markers that need another before them"};
        known = gates.insert(known, gate);
        patterns_.push_back({.text = gate, .sets = 1u << (gates.size() - 1), .status = {}});
        total += gate.size();
      }
      pattern.needs = 1u << (known - gates.begin());
    }
    total += pattern.text.size();
    if (total > most_text) return Error{"the body markers are longer than 8 KiB together"};
    patterns_.push_back(std::move(pattern));
  }
  return true;
}

void MarkerSet::add_classes() {
  for (const Pattern& pattern : patterns_) {
    for (char c : pattern.text) {
      const auto byte = static_cast<unsigned char>(c);
      if (class_of_[byte] == 0) {
        class_of_[byte] = class_of_[upper(byte)] = static_cast<std::uint8_t>(classes_++);
      }
    }
  }
}

// Only transitions along the texts; `root` stands for "none yet".
void MarkerSet::add_trie() {
  const auto new_state = [this] {
    next_.resize(next_.size() + classes_, root);
    first_.push_back(none);
    return static_cast<State>(first_.size() - 1);
  };
  new_state();
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    State state = root;
    for (char c : patterns_[i].text) {
      const auto at = state * classes_ + class_of_[static_cast<unsigned char>(c)];
      if (next_[at] == root) {
        const State fresh = new_state();
        next_[at] = fresh;
      }
      state = next_[at];
    }
    patterns_[i].next = std::exchange(first_[state], static_cast<std::uint16_t>(i));
  }
}

// Breadth first, so that a state's fallback is complete before the state: then a missing
// transition is the fallback's.
void MarkerSet::add_failures() {
  const std::size_t states = first_.size();
  std::vector<State> fallback(states, root), order{root};
  shorter_.assign(states, root);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const State state = order[i];
    const State behind = fallback[state];
    shorter_[state] = first_[behind] != none ? behind : shorter_[behind];
    for (std::size_t c = 0; c < classes_; ++c) {
      State& to = next_[state * classes_ + c];
      const State otherwise = state == root ? root : next_[behind * classes_ + c];
      if (to == root) {
        to = otherwise;
      } else {
        fallback[to] = otherwise;
        order.push_back(to);
      }
    }
  }
  for (State& to : next_) {
    if (first_[to] != none || shorter_[to] != root) to |= ends_here;
  }
}

// Texts with the same beginning share a group; after that groups are dealt out in turn.
void MarkerSet::add_filter() {
  std::vector<std::string> beginnings;
  for (const Pattern& pattern : patterns_) beginnings.push_back(pattern.text.substr(0, prefix));
  std::sort(beginnings.begin(), beginnings.end());
  beginnings.erase(std::unique(beginnings.begin(), beginnings.end()), beginnings.end());
  for (std::size_t i = 0; i < beginnings.size(); ++i) {
    const auto group = static_cast<std::uint8_t>(1u << (i * 8 / beginnings.size()));
    for (std::size_t at = 0; at < prefix; ++at) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        const auto c = static_cast<unsigned char>(byte);
        if (at < beginnings[i].size() &&
            lower(c) != static_cast<unsigned char>(beginnings[i][at])) {
          continue;
        }
        groups_[at][byte] |= group;
        low_[at][byte & 15] |= group;
        high_[at][byte >> 4] |= group;
      }
    }
  }
#ifdef SLUICE_HAS_AVX2
  shuffles_ = __builtin_cpu_supports("avx2");
#endif
}

bool MarkerSet::any_for(std::uint16_t status) const {
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
    return pattern.marker != none && pattern.status.admits(status);
  });
}

// The first place from `from` on where a text may begin. Near the end, where fewer than three
// bytes are left to look at, every place may be one.
std::size_t MarkerSet::skip(const unsigned char* bytes, std::size_t from, std::size_t size) const {
  return shuffles_ ? skip_by_shuffle(bytes, from, size) : skip_by_table(bytes, from, size);
}

std::size_t MarkerSet::skip_by_table(const unsigned char* bytes, std::size_t from,
                                     std::size_t size) const {
  for (; from + prefix <= size; ++from) {
    if (groups_[0][bytes[from]] & groups_[1][bytes[from + 1]] & groups_[2][bytes[from + 2]]) break;
  }
  return from;
}

#ifdef SLUICE_HAS_AVX2
namespace {

// For 32 bytes at once: the groups that have this byte at this place of their beginning.
__attribute__((target("avx2"))) inline __m256i groups_of(const unsigned char* bytes, __m256i low,
                                                         __m256i high) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i loaded = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
  return _mm256_and_si256(
      _mm256_shuffle_epi8(low, _mm256_and_si256(loaded, nibble)),
      _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(loaded, 4), nibble)));
}

// In both halves: each looks up its own 16 bytes.
__attribute__((target("avx2"))) inline __m256i twice(const std::array<std::uint8_t, 16>& table) {
  return _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(table.data())));
}

}  // namespace

__attribute__((target("avx2"))) std::size_t MarkerSet::skip_by_shuffle(const unsigned char* bytes,
                                                                       std::size_t from,
                                                                       std::size_t size) const {
  constexpr std::size_t kAtOnce = 32;
  if (size < from + kAtOnce + prefix - 1) return skip_by_table(bytes, from, size);
  const __m256i low0 = twice(low_[0]), low1 = twice(low_[1]), low2 = twice(low_[2]);
  const __m256i high0 = twice(high_[0]), high1 = twice(high_[1]), high2 = twice(high_[2]);
  // The last look may go over some that the one before found empty.
  const std::size_t last = size - (kAtOnce + prefix - 1);
  for (;; from = std::min(from + kAtOnce, last)) {
    const unsigned char* at = bytes + from;
    const __m256i found = _mm256_and_si256(
        groups_of(at, low0, high0),
        _mm256_and_si256(groups_of(at + 1, low1, high1), groups_of(at + 2, low2, high2)));
    const auto empty = static_cast<unsigned>(
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(found, _mm256_setzero_si256())));
    if (empty != ~0u) return from + static_cast<std::size_t>(std::countr_one(empty));
    if (from == last) return last + kAtOnce;
  }
}
#else
std::size_t MarkerSet::skip_by_shuffle(const unsigned char* bytes, std::size_t from,
                                       std::size_t size) const {
  return skip_by_table(bytes, from, size);
}
#endif

MarkerScan::MarkerScan(std::shared_ptr<const MarkerSet> set, std::uint16_t status,
                       std::size_t limit)
    : set_(std::move(set)), status_(status) {
  if (set_ && set_->any_for(status)) left_ = limit;
}

std::optional<std::size_t> MarkerScan::feed(std::string_view chunk) {
  const std::size_t size = std::min(chunk.size(), left_);
  left_ -= size;
  const auto* bytes = reinterpret_cast<const unsigned char*>(chunk.data());
  for (std::size_t i = 0; i < size; ++i) {
    if (state_ == MarkerSet::root) {
      i = set_->skip(bytes, i, size);
      if (i == size) break;
    }
    state_ = set_->step(state_, bytes[i]);
    if (state_ & MarkerSet::ends_here) {
      state_ &= static_cast<MarkerSet::State>(~MarkerSet::ends_here);
      if (const auto found = ending_at(state_)) {
        left_ = 0;
        return found;
      }
    }
  }
  return std::nullopt;
}

// All texts that end in this state, the longest first.
std::optional<std::size_t> MarkerScan::ending_at(MarkerSet::State state) {
  for (; state != MarkerSet::root; state = set_->shorter_[state]) {
    for (auto i = set_->first_[state]; i != MarkerSet::none; i = set_->patterns_[i].next) {
      const auto& pattern = set_->patterns_[i];
      gates_ |= pattern.sets;
      const bool open = (pattern.needs & ~gates_) == 0;
      if (pattern.marker != MarkerSet::none && open && pattern.status.admits(status_)) {
        return pattern.marker;
      }
    }
  }
  return std::nullopt;
}

}  // namespace sluice
