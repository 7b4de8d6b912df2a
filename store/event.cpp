#include "store/event.h"

#include "store/wire.h"

namespace sluice {
namespace {

constexpr char kEventLetter = 'E';
constexpr std::uint8_t kEventVersion = 2;  // 2: the mark

}  // namespace

std::string encode_event(const Event& event) {
  // The fixed part has no tags: fields of later versions follow the text.
  WireWriter fields;
  fields.number(event.at.time_since_epoch().count());
  fields.number(static_cast<std::uint8_t>(event.kind));
  const std::string_view key = std::string_view(event.key).substr(0, kMaxEventText);
  const std::string_view text = std::string_view(event.text).substr(0, kMaxEventText);
  fields.number(static_cast<std::uint16_t>(key.size()));
  fields.text(key);
  fields.number(static_cast<std::uint16_t>(text.size()));
  fields.text(text);
  fields.number(static_cast<std::uint8_t>(event.mark));
  return seal({kEventLetter, kEventVersion, 1}, fields.bytes());
}

Result<Event> decode_event(std::string_view bytes) {
  const auto fields = unseal(bytes, kEventLetter, kEventVersion);
  if (!fields) return Error{fields.error()};
  WireReader reader(*fields);
  Event event;
  event.at = UtcTime{Duration{reader.number<std::int64_t>()}};
  event.kind = static_cast<EventKind>(reader.number<std::uint8_t>());
  event.key = reader.text(reader.number<std::uint16_t>());
  event.text = reader.text(reader.number<std::uint16_t>());
  if (!reader.done()) event.mark = static_cast<EventMark>(reader.number<std::uint8_t>());
  if (!reader.ok()) return Error{"the event ends too early"};
  return event;
}

std::string_view event_kind_name(EventKind kind) {
  switch (kind) {
    case EventKind::transition: return "transition";
    case EventKind::operator_act: return "operator";
    case EventKind::anomaly: return "anomaly";
    case EventKind::alert: return "alert";
    case EventKind::store: return "store";
    case EventKind::budget: return "budget";
    case EventKind::policy: return "policy";
  }
  return "other";
}

}  // namespace sluice
