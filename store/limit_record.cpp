#include "store/limit_record.h"

#include <algorithm>
#include <utility>

#include "policy/units.h"
#include "store/wire.h"

namespace sluice {
namespace {

constexpr char kLimitLetter = 'W';
constexpr std::uint8_t kLimitVersion = 1;

std::string limit_key(std::string_view name) { return std::string(kLimitPrefix).append(name); }

// On disk a moment is how long before the writing it was; after it: negative.
std::int64_t age(Instant moment, const ClockPair& now) { return (now.mono - moment).count(); }

// Writers hand in the time at which they asked, so a record may be a little younger than its
// reader's now. Further back, the wall clock has jumped.
constexpr Duration kQueued = 1min;

// When the record was written, on the reader's clock.
Instant written_at(WireReader& reader, const ClockPair& now) {
  const auto boot = reader.number<std::uint64_t>();
  const Instant mono{Duration{reader.number<std::int64_t>()}};
  const UtcTime utc{Duration{reader.number<std::int64_t>()}};
  if (boot != 0 && boot == now.boot) return mono;
  return now.mono - std::clamp<Duration>(now.utc - utc, -kQueued, kLongestDuration);
}

// One that cannot be read: every window is full from now on, rather than empty.
LimitHistory full(const std::vector<RequestLimit>& limits, Instant now) {
  LimitHistory history;
  for (const RequestLimit& limit : limits)
    history.push_back({limit.per, {{now, now, limit.count}}});
  return history;
}

LimitHistory history_of(std::optional<std::string_view> bytes,
                        const std::vector<RequestLimit>& limits, const ClockPair& now) {
  if (!bytes) return {};
  auto history = decode_limits(*bytes, now);
  return history ? std::move(*history) : full(limits, now.mono);
}

}  // namespace

std::string encode_limits(const LimitHistory& history, const ClockPair& now) {
  WireWriter fields;
  fields.number(now.boot);
  fields.number(now.mono.time_since_epoch().count());
  fields.number(now.utc.time_since_epoch().count());
  fields.number(static_cast<std::uint16_t>(history.size()));
  for (const LimitWindow& window : history) {
    fields.number(window.per.count());
    fields.number(static_cast<std::uint16_t>(window.slots.size()));
    for (const LimitSlot& slot : window.slots) {
      fields.number(age(slot.first, now));
      fields.number(age(slot.last, now));
      fields.number(slot.count);
    }
  }
  return seal({kLimitLetter, kLimitVersion, 1}, fields.bytes());
}

Result<LimitHistory> decode_limits(std::string_view bytes, const ClockPair& now) {
  const auto fields = unseal(bytes, kLimitLetter, kLimitVersion);
  if (!fields) return Error{fields.error()};
  WireReader reader(*fields);
  const Instant written = written_at(reader, now);
  const auto moment = [&] {
    const Duration age{reader.number<std::int64_t>()};
    return written - std::clamp<Duration>(age, -kLongestDuration, kLongestDuration);
  };
  LimitHistory history;
  const auto windows = reader.number<std::uint16_t>();
  if (windows > kMaxLimitWindows) return Error{"there are too many windows"};
  for (std::uint16_t i = 0; i < windows && reader.ok(); ++i) {
    LimitWindow& window = history.emplace_back();
    window.per = std::clamp<Duration>(Duration{reader.number<std::int64_t>()}, Duration(1),
                                      kLongestDuration);
    const auto slots = reader.number<std::uint16_t>();
    if (slots > kMaxLimitSlots) return Error{"there are too many slots"};
    for (std::uint16_t j = 0; j < slots && reader.ok(); ++j) {
      const Instant first = moment();
      const Instant last = moment();
      const auto count = reader.number<std::uint64_t>();
      window.slots.push_back({first, std::max(first, last), count});
    }
  }
  if (!reader.ok()) return Error{"the record of the limits ends too early"};
  return history;
}

void reserve_requests(Store& store, std::string_view name, std::vector<RequestLimit> limits,
                      const LimitBlockAsk& ask, Completion done) {
  store.update(
      limit_key(name),
      [limits = std::move(limits), ask](std::optional<std::string_view> current) {
        LimitHistory history = history_of(current, limits, ask.now);
        const LimitAsk terms{ask.now.mono, ask.now.mono + ask.ahead, ask.want, ask.needed};
        const std::uint64_t granted = take(limits, history, terms);
        if (granted == 0) return Change{};
        return Change{Change::Kind::put, encode_limits(history, ask.now), granted};
      },
      std::move(done));
}

void refund_requests(Store& store, std::string_view name, std::vector<RequestLimit> limits,
                     Instant until, std::uint64_t count, const ClockPair& now, Completion done) {
  store.update(
      limit_key(name),
      [limits = std::move(limits), until, count, now](std::optional<std::string_view> current) {
        if (!current) return Change{Change::Kind::keep, {}, 1};
        auto history = decode_limits(*current, now);
        if (!history) return Change{Change::Kind::keep, {}, 1};
        give_back(limits, *history, until, count);
        return Change{Change::Kind::put, encode_limits(*history, now), 1};
      },
      std::move(done));
}

Result<LimitHistory> limit_history(Store& store, std::string_view name, const ClockPair& now) {
  const auto read = store.get(limit_key(name));
  if (!read) return Error{read.error()};
  if (!read->value) return LimitHistory{};
  return decode_limits(*read->value, now);
}

bool limits_are_over(std::string_view bytes, const ClockPair& now) {
  const auto history = decode_limits(bytes, now);
  return history && std::all_of(history->begin(), history->end(), [&](const LimitWindow& window) {
           return used(*history, window.per, now.mono) == 0;
         });
}

}  // namespace sluice
