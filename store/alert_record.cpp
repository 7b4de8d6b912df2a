#include "store/alert_record.h"

#include <algorithm>
#include <string>
#include <utility>

#include "policy/units.h"
#include "store/wire.h"

namespace sluice {
namespace {

constexpr char kAlertLetter = 'A';
constexpr std::uint8_t kAlertVersion = 1;

std::string record_key(std::string_view channel) {
  return std::string(kAlertPrefix).append(channel);
}

// When to tell again and when to give up: the wall clock will do, and one that was set back makes
// nothing older than it is.
std::int64_t to_utc(Instant moment, const ClockPair& now) {
  return (now.utc + (moment - now.mono)).time_since_epoch().count();
}

Instant from_utc(std::int64_t micros, const ClockPair& now) {
  const auto at = std::chrono::duration<double, std::micro>(static_cast<double>(micros));
  const auto age = now.utc.time_since_epoch() - at;
  const auto most = std::chrono::duration<double, std::micro>(kLongestDuration);
  const auto bounded = std::clamp(age, decltype(age)::zero(), decltype(age)(most));
  return now.mono - std::chrono::duration_cast<Duration>(bounded);
}

// Bounded, so that every sum with it fits.
UtcTime date_of(std::int64_t micros) {
  constexpr std::int64_t most = Duration(std::chrono::hours(24 * 36525 * 2)).count();
  return UtcTime{Duration{std::clamp<std::int64_t>(micros, 0, most)}};
}

void put_text(WireWriter& writer, std::string_view text, std::size_t most) {
  text = text.substr(0, most);
  writer.number(static_cast<std::uint16_t>(text.size()));
  writer.text(text);
}

std::string encode(const Outbox& box, const ClockPair& now) {
  WireWriter fields;
  fields.number(box.cursor);
  fields.number(box.more);
  fields.number(to_utc(box.more_since, now));
  fields.number(static_cast<std::uint16_t>(box.waiting.size()));
  for (const Outbox::Waiting& waiting : box.waiting) {
    fields.number(static_cast<std::uint8_t>(waiting.alert.kind));
    fields.number(waiting.alert.count);
    fields.number(waiting.alert.at.time_since_epoch().count());
    fields.number(to_utc(waiting.since, now));
    put_text(fields, waiting.alert.key, Alert::max_key);
    put_text(fields, waiting.alert.sentence, Alert::max_sentence);
  }
  fields.number(static_cast<std::uint16_t>(box.told.size()));
  for (const Outbox::Told& told : box.told) {
    fields.number(told.name);
    fields.number(to_utc(told.at, now));
  }
  return seal({kAlertLetter, kAlertVersion, 1}, fields.bytes());
}

std::optional<Outbox> decode(std::string_view bytes, const ClockPair& now) {
  const auto fields = unseal(bytes, kAlertLetter, kAlertVersion);
  if (!fields) return std::nullopt;
  WireReader reader(*fields);
  Outbox box;
  box.cursor = reader.number<std::uint64_t>();
  box.more = reader.number<std::uint64_t>();
  box.more_since = from_utc(reader.number<std::int64_t>(), now);
  for (auto left = reader.number<std::uint16_t>(); left > 0 && reader.ok(); --left) {
    Outbox::Waiting& waiting = box.waiting.emplace_back();
    const auto kind = reader.number<std::uint8_t>();
    if (kind >= kAlertKinds) return std::nullopt;
    waiting.alert.kind = static_cast<AlertKind>(kind);
    waiting.alert.count = reader.number<std::uint32_t>();
    waiting.alert.at = date_of(reader.number<std::int64_t>());
    waiting.since = from_utc(reader.number<std::int64_t>(), now);
    waiting.alert.key = reader.text(reader.number<std::uint16_t>());
    waiting.alert.sentence = reader.text(reader.number<std::uint16_t>());
  }
  for (auto left = reader.number<std::uint16_t>(); left > 0 && reader.ok(); --left) {
    const auto name = reader.number<std::uint64_t>();
    box.told.push_back({name, from_utc(reader.number<std::int64_t>(), now)});
  }
  if (!reader.ok()) return std::nullopt;
  return box;
}

}  // namespace

void save_outbox(Store& store, std::string_view channel, const Outbox& box, const ClockPair& now,
                 Completion done) {
  store.put(record_key(channel), encode(box, now), std::move(done));
}

Result<std::optional<Outbox>> load_outbox(Store& store, std::string_view channel,
                                          const ClockPair& now) {
  const auto read = store.get(record_key(channel));
  if (!read) return Error{read.error()};
  if (!read->value) return std::optional<Outbox>();
  return decode(*read->value, now);
}

}  // namespace sluice
