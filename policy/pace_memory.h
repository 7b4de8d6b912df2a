// What was learned about a key's limit: a plain value that policy/pacer.h computes the next one of
// and store/ keeps with the rest of the key's state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "policy/time.h"

namespace sluice {

// What kind of limit the origin has. Values are on disk: never renumber.
enum class PaceModel : std::uint8_t {
  none = 0,    // no limit was met
  told = 1,    // a bucket whose headers tell what is left
  window = 2,  // `count` in any `length`
  bucket = 3,  // `rate` a second, `burst` at once
};

// Requests of one part of a window: how many, and when the last of them went.
struct PaceUse {
  Instant until{};
  std::uint32_t count = 0;
  bool operator==(const PaceUse&) const = default;
};
using PaceUses = std::array<PaceUse, 8>;

// Everything that survives a restart; the store keeps it field by field.
struct PaceMemory {
  PaceModel model = PaceModel::none;
  bool known = false;          // enough went well: no gentle start
  bool ban = false;            // the limit is that of a ban or an overload: its edge is not sought
  Instant learned_at{};        // when the limit was last seen to hold
  std::uint32_t refusals = 0;  // that taught something, since the key was first seen

  Instant hold{};  // nothing goes before, by the latest refusal

  // A window. Its length is in (shortest, longest].
  std::uint32_t count = 0;
  Duration length{};
  Duration shortest{}, longest{};
  std::uint32_t proven = 0;  // times that a window of this length was survived
  bool coarse = false;       // the length was found by trying: a shorter one may do

  PaceUses used{};  // of the limit, lately, as of the latest write; oldest first

  // A bucket, or what its headers tell.
  double rate = 0;  // a second
  double burst = 0;
  std::uint32_t patience = 0;  // successes before a higher rate is tried

  // In flight at most; 0: no limit was met. adapt = "linear": how many there were at the first
  // refusal, where the policy sets no limit.
  std::uint32_t cap = 0;
  std::uint32_t cap_patience = 0;  // successes at the cap before one more is tried

  // adapt = "linear".
  Duration delay{};          // above min_delay
  Duration delay_floor{};    // not lowered under this again
  std::uint32_t streak = 0;  // successes since the delay last moved
  bool lowered = false;      // the last move was down

  bool operator==(const PaceMemory&) const = default;
};

// The longest that a request is not in the store, while that can be written to.
constexpr Duration kPaceUnwritten = std::chrono::seconds(6);

// How far apart requests are in the long run, by what was learned; 0: as close as they come.
Duration usual_delay(const PaceMemory& learned);

}  // namespace sluice
