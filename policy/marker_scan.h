// Finds any of many texts in a body that streams through, without regard to ASCII case, in one
// pass. A MarkerSet is built once per set of rules, immutable and shared by all threads; a
// MarkerScan belongs to one response. Neither keeps any of the body.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/result.h"

namespace sluice {

// Status codes, by membership. Empty means any.
class StatusSet {
 public:
  StatusSet() = default;
  explicit StatusSet(const std::vector<std::uint16_t>& codes) {
    for (std::uint16_t code : codes) {
      if (code < bits_.size()) bits_.set(code);
    }
  }
  bool contains(std::uint16_t code) const { return code < bits_.size() && bits_.test(code); }
  bool admits(std::uint16_t code) const { return bits_.none() || contains(code); }

 private:
  std::bitset<600> bits_;
};

struct BodyMarker {
  // What finding it means.
  enum class Meaning : std::uint8_t { anti_bot, rate_limited, no_credit };

  std::string text;                     // not empty
  std::vector<std::uint16_t> status{};  // only with these; empty: with any
  Meaning meaning = Meaning::anti_bot;
  std::string after{};  // only when this text came before it; empty: always
};

class MarkerSet {
 public:
  // Refuses what would make the tables large: more than 8 KiB of text in all.
  static Result<std::shared_ptr<const MarkerSet>> build(std::vector<BodyMarker> markers);

  const BodyMarker& marker(std::size_t index) const { return markers_[index]; }
  bool any_for(std::uint16_t status) const;

 private:
  friend class MarkerScan;
  using State = std::uint16_t;
  static constexpr State root = 0;
  static constexpr State ends_here = 0x8000;  // set in a transition to where some text ends
  static constexpr std::uint16_t none = 0xffff;

  // A text to find: a marker's own, or one that another marker must come after.
  struct Pattern {
    std::string text;
    std::uint16_t marker = none;
    std::uint32_t sets = 0;   // the gate bit that finding it opens
    std::uint32_t needs = 0;  // the gate bit it is behind
    StatusSet status;
    std::uint16_t next = none;  // of the patterns that end in the same state
  };

  Result<bool> add_patterns();
  void add_classes();
  void add_trie();
  void add_failures();
  void add_filter();
  State step(State state, unsigned char byte) const {
    return next_[static_cast<std::size_t>(state) * classes_ + class_of_[byte]];
  }
  std::size_t skip(const unsigned char* bytes, std::size_t from, std::size_t size) const;
  std::size_t skip_by_table(const unsigned char* bytes, std::size_t from, std::size_t size) const;
  std::size_t skip_by_shuffle(const unsigned char* bytes, std::size_t from, std::size_t size) const;

  std::vector<BodyMarker> markers_;
  std::vector<Pattern> patterns_;

  // Aho and Corasick's automaton, its alphabet reduced to the bytes that occur in a text.
  std::size_t classes_ = 1;  // class 0: every byte that occurs in none
  std::array<std::uint8_t, 256> class_of_{};
  std::vector<State> next_;           // [state * classes_ + class]
  std::vector<std::uint16_t> first_;  // by state: the first pattern that ends here
  std::vector<State> shorter_;        // by state: where the next shorter text ends; root: nowhere

  // A filter in front of it: a text can begin only where, for one of eight groups of texts, the
  // next three bytes are each one that the group has there. One bit per group.
  static constexpr std::size_t prefix = 3;
  std::array<std::array<std::uint8_t, 256>, prefix> groups_{};
  // The same for a byte's low and high half, for the vector instruction that looks up 32 at once.
  alignas(16) std::array<std::array<std::uint8_t, 16>, prefix> low_{}, high_{};
  bool shuffles_ = false;  // the processor has it
};

class MarkerScan {
 public:
  MarkerScan() = default;  // finds nothing
  MarkerScan(std::shared_ptr<const MarkerSet> set, std::uint16_t status, std::size_t limit);

  // The next bytes of the body, decoded. The index of the first marker found, once.
  std::optional<std::size_t> feed(std::string_view bytes);
  // Nothing more can be found: there is no need to decode further.
  bool done() const { return left_ == 0; }
  std::size_t left() const { return left_; }  // bytes that it would still look at

 private:
  std::optional<std::size_t> ending_at(MarkerSet::State state);

  std::shared_ptr<const MarkerSet> set_;
  std::size_t left_ = 0;  // bytes still to be looked at
  std::uint32_t gates_ = 0;
  std::uint16_t status_ = 0;
  MarkerSet::State state_ = MarkerSet::root;
};

static_assert(sizeof(MarkerScan) < 64, "there is one for every response in flight");

}  // namespace sluice
