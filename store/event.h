// Something that happened, for `sluice events`, the admin page and alerts. Kept in a ring by the
// store; never holds a credential.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/result.h"
#include "policy/time.h"

namespace sluice {

// Values are on disk: never renumber.
enum class EventKind : std::uint8_t {
  transition = 0,    // a breaker changed its phase
  operator_act = 1,  // open, close, stop, resume
  anomaly = 2,
  alert = 3,
  store = 4,   // set aside, failing, well again
  budget = 5,  // a mark was passed
  policy = 6,  // a file was taken up or refused
};

// What a transition, an act or an alert is to whoever must tell people. Values are on disk: never
// renumber.
enum class EventMark : std::uint8_t {
  none = 0,
  begins = 1,  // a key that was open to all is shut; a stop comes into force
  ends = 2,    // a stop, or trouble with the store, is over
  lasts = 3,   // a key stays shut
};

struct Event {
  UtcTime at{};
  EventKind kind = EventKind::transition;
  std::string key;   // what it is about; empty: everything
  std::string text;  // one sentence
  EventMark mark = EventMark::none;

  bool operator==(const Event&) const = default;
};

inline constexpr std::size_t kMaxEventText = 1000;  // of key and text; longer ones are cut

std::string encode_event(const Event& event);
Result<Event> decode_event(std::string_view bytes);

// The word for it in tables and JSON; a kind from a later version is "other".
std::string_view event_kind_name(EventKind kind);

}  // namespace sluice
