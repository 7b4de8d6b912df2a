#include "store/record.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "store/wire.h"

namespace sluice {
namespace {

constexpr char kHostLetter = 'H';
constexpr std::uint8_t kHostVersion = 1;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();  // on disk, for Instant{}
constexpr Duration kCentury = std::chrono::hours(24 * 36525);  // bounds times, so that sums fit

// Every field with its tag. Tags are on disk: never renumber, never reuse. A field that is left out
// has its default. 1 to 3 are the moment of writing.
template <class State, class Visit>
void each_field(State& state, Visit& visit) {
  visit(4, state.phase);
  visit(5, state.cause);
  visit(6, state.status);
  visit(7, state.opened_at);
  visit(8, state.until);
  visit(9, state.asked);
  visit(10, state.closed_at);
  visit(11, state.epoch);
  visit(12, state.level);
  visit(13, state.antibot_level);
  visit(14, state.calm_since);
  visit(15, state.consecutive);
  visit(16, state.probe_successes);
  visit(17, state.window);
  visit(18, state.leases);
  visit(19, state.last_lease);
  visit(20, state.pace.delay);
  visit(21, state.pace.delay_floor);
  visit(22, state.streak);
  visit(23, state.reason);
  visit(24, state.said);
  visit(25, state.counts.success);
  visit(26, state.counts.neutral);
  visit(27, state.counts.rate_limited);
  visit(28, state.counts.anti_bot);
  visit(29, state.counts.server_error);
  visit(30, state.counts.network);
  visit(31, state.counts.local);
  visit(32, state.counts.refused);
  visit(33, state.counts.trips);
  visit(34, state.counts.junk);
  visit(35, state.version);
  visit(36, state.pace.model);
  visit(37, state.pace.known);
  visit(38, state.pace.ban);
  visit(39, state.pace.learned_at);
  visit(40, state.pace.refusals);
  visit(41, state.pace.count);
  visit(42, state.pace.length);
  visit(43, state.pace.shortest);
  visit(44, state.pace.longest);
  visit(45, state.pace.proven);
  visit(46, state.pace.rate);
  visit(47, state.pace.burst);
  visit(48, state.pace.patience);
  visit(49, state.pace.cap);
  visit(50, state.pace.cap_patience);
  visit(51, state.pace.streak);
  visit(52, state.pace.lowered);
  visit(53, state.pace.coarse);
  visit(54, state.usual.peaks);
  visit(55, state.usual.hour);
  visit(56, state.usual.peak);
  visit(57, state.usual.doubtful);
  visit(58, state.usual.since);
  visit(59, state.pace.hold);
  visit(60, state.pace.used);
}

std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

std::int64_t subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

template <class Time>
std::int64_t micros(Time time) {
  return time.time_since_epoch().count();
}

class Encoder {
 public:
  explicit Encoder(const ClockPair& now) : now_(now) {}

  template <class Number>
  requires std::is_integral_v<Number> || std::is_enum_v<Number>
  void operator()(std::uint8_t tag, Number value) {
    if (value == Number{}) return;
    WireWriter bytes;
    bytes.number(value);
    put_field(fields_, tag, bytes.bytes());
  }
  void operator()(std::uint8_t tag, Duration value) { (*this)(tag, value.count()); }
  void operator()(std::uint8_t tag, double value) {
    (*this)(tag, std::bit_cast<std::uint64_t>(value));
  }
  void operator()(std::uint8_t tag, Instant value) {
    if (value == Instant{}) return;
    WireWriter bytes;
    bytes.number(to_utc(value));  // also when that is 0: it was 1970 on this machine
    put_field(fields_, tag, bytes.bytes());
  }
  void operator()(std::uint8_t tag, const std::string& value) {
    if (!value.empty()) put_field(fields_, tag, std::string_view(value).substr(0, kMaxText));
  }
  void operator()(std::uint8_t tag, const std::vector<Instant>& values) {
    WireWriter bytes;
    const std::size_t skip = values.size() - std::min(values.size(), HostState::max_window);
    for (std::size_t i = skip; i < values.size(); ++i) bytes.number(to_utc(values[i]));
    if (!values.empty()) put_field(fields_, tag, bytes.bytes());
  }
  void operator()(std::uint8_t tag, const std::vector<ProbeLease>& values) {
    WireWriter bytes;
    const std::size_t skip = values.size() - std::min(values.size(), HostState::max_leases);
    for (std::size_t i = skip; i < values.size(); ++i) {
      bytes.number(values[i].id);
      bytes.number(to_utc(values[i].expires));
    }
    if (!values.empty()) put_field(fields_, tag, bytes.bytes());
  }

  void operator()(std::uint8_t tag, UtcTime value) { (*this)(tag, micros(value)); }
  void operator()(std::uint8_t tag, const UsualRate::Peaks& values) {
    if (values == UsualRate::Peaks{}) return;
    WireWriter bytes;
    for (const std::uint16_t value : values) bytes.number(value);
    put_field(fields_, tag, bytes.bytes());
  }

  void operator()(std::uint8_t tag, const PaceUses& values) {
    if (values == PaceUses{}) return;
    WireWriter bytes;
    for (const PaceUse& value : values) {
      bytes.number(to_utc(value.until));
      bytes.number(value.count);
    }
    put_field(fields_, tag, bytes.bytes());
  }

  const std::string& bytes() const { return fields_.bytes(); }

 private:
  static constexpr std::size_t kMaxText = std::max(HostState::max_reason, HostState::max_said);

  std::int64_t to_utc(Instant time) const {
    if (time == Instant{}) return kNever;
    return add(micros(now_.utc), subtract(micros(time), micros(now_.mono)));
  }

  ClockPair now_;
  WireWriter fields_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view fields) {
    WireReader reader(fields);
    while (const auto field = next_field(reader)) fields_[field->tag] = field->bytes;
    ok_ = reader.ok();
  }
  bool ok() const { return ok_; }

  // Finds the moment of writing on the reader's clock. By the monotonic clock within one boot; by
  // the wall clock otherwise, and if that one went back, no time has passed.
  void place(const ClockPair& now) {
    std::int64_t saved_mono = 0;
    std::uint64_t boot = 0;
    (*this)(1, saved_utc_);
    (*this)(2, saved_mono);
    (*this)(3, boot);
    now_ = micros(now.mono);
    utc_ = micros(now.utc);
    std::int64_t age = std::max<std::int64_t>(0, subtract(micros(now.utc), saved_utc_));
    if (boot != 0 && boot == now.boot) age = std::max<std::int64_t>(0, subtract(now_, saved_mono));
    saved_ = subtract(now_, std::min(age, kCentury.count()));
  }
  Instant saved() const { return Instant{Duration{saved_}}; }

  template <class Number>
  requires std::is_integral_v<Number>
  void operator()(std::uint8_t tag, Number& value) {
    if (fields_[tag].empty()) return;
    // A later version may have made it wider: then it is not ours to guess.
    if (fields_[tag].size() != sizeof(Number)) ok_ = false;
    if (ok_) value = WireReader(fields_[tag]).number<Number>();
  }
  void operator()(std::uint8_t tag, Phase& value) {
    std::uint8_t raw = 0;
    (*this)(tag, raw);
    if (raw > static_cast<std::uint8_t>(Phase::half_open)) ok_ = false;
    if (ok_) value = static_cast<Phase>(raw);
  }
  void operator()(std::uint8_t tag, Cause& value) {
    std::uint8_t raw = 0;
    (*this)(tag, raw);
    // One of a later version: it is shut all the same.
    if (raw <= static_cast<std::uint8_t>(Cause::anomaly)) value = static_cast<Cause>(raw);
  }
  void operator()(std::uint8_t tag, PaceModel& value) {
    std::uint8_t raw = 0;
    (*this)(tag, raw);
    // One of a later version: then it is learned anew.
    if (raw <= static_cast<std::uint8_t>(PaceModel::bucket)) value = static_cast<PaceModel>(raw);
  }
  void operator()(std::uint8_t tag, double& value) {
    std::uint64_t raw = 0;
    (*this)(tag, raw);
    const auto read = std::bit_cast<double>(raw);
    value = std::isfinite(read) ? std::clamp(read, 0.0, 1e12) : 0.0;
  }
  void operator()(std::uint8_t tag, Duration& value) {
    std::int64_t raw = 0;
    (*this)(tag, raw);
    value = std::clamp(Duration{raw}, Duration{0}, kCentury);
  }
  void operator()(std::uint8_t tag, Instant& value) {
    std::int64_t raw = kNever;
    (*this)(tag, raw);
    value = to_instant(raw);
  }
  void operator()(std::uint8_t tag, std::string& value) { value = fields_[tag]; }
  void operator()(std::uint8_t tag, std::vector<Instant>& values) {
    WireReader reader(fields_[tag]);
    const std::size_t count = fields_[tag].size() / 8;
    for (std::size_t i = 0; i < std::min(count, HostState::max_window); ++i)
      values.push_back(to_instant(reader.number<std::int64_t>()));
  }
  void operator()(std::uint8_t tag, std::vector<ProbeLease>& values) {
    WireReader reader(fields_[tag]);
    const std::size_t count = fields_[tag].size() / 16;
    for (std::size_t i = 0; i < std::min(count, HostState::max_leases); ++i) {
      const auto id = reader.number<std::uint64_t>();
      values.push_back({id, to_instant(reader.number<std::int64_t>())});
    }
  }
  void operator()(std::uint8_t tag, UtcTime& value) {
    std::int64_t raw = 0;
    (*this)(tag, raw);
    const UtcTime latest{Duration{add(utc_, kCentury.count())}};
    value = std::clamp(UtcTime{Duration{raw}}, UtcTime{}, std::max(latest, UtcTime{}));
  }
  void operator()(std::uint8_t tag, UsualRate::Peaks& values) {
    if (fields_[tag].size() != sizeof values) return;  // of another version: learned anew
    WireReader reader(fields_[tag]);
    for (std::uint16_t& value : values) value = reader.number<std::uint16_t>();
  }
  void operator()(std::uint8_t tag, PaceUses& values) {
    constexpr std::size_t size = sizeof(std::int64_t) + sizeof(PaceUse::count);
    if (fields_[tag].size() != size * values.size()) return;  // all that there is, is assumed used
    WireReader reader(fields_[tag]);
    for (PaceUse& value : values) {
      value.until = to_instant(reader.number<std::int64_t>());
      value.count = reader.number<std::uint32_t>();
    }
  }

 private:
  Instant to_instant(std::int64_t utc) const {
    if (utc == kNever) return Instant{};
    const std::int64_t raw = add(saved_, subtract(utc, saved_utc_));
    const std::int64_t time =
        std::clamp(raw, subtract(now_, kCentury.count()), add(now_, kCentury.count()));
    return Instant{Duration{time == 0 ? 1 : time}};  // 0 would mean "never"
  }

  std::array<std::string_view, 256> fields_;
  bool ok_ = true;
  std::int64_t now_ = 0, utc_ = 0;          // of the reader
  std::int64_t saved_ = 0, saved_utc_ = 0;  // of the writing, on the same two clocks
};

void not_after(Instant limit, Instant& time) {
  if (time > limit) time = limit == Instant{} ? Instant{Duration{-1}} : limit;
}

// Whatever the bytes said: the past is past, and no cooldown is longer than the rules allow.
void bound(HostState& state, Instant now, Duration longest) {
  for (Instant* past :
       {&state.opened_at, &state.closed_at, &state.calm_since, &state.pace.learned_at})
    not_after(now, *past);
  not_after(now + std::chrono::hours(48), state.pace.hold);
  for (Instant& failure : state.window) not_after(now, failure);
  for (PaceUse& use : state.pace.used) not_after(now, use.until);
  std::sort(state.window.begin(), state.window.end());
  if (state.cause != Cause::operator_act && state.cause != Cause::anomaly)
    not_after(now + longest, state.until);
  for (ProbeLease& lease : state.leases) not_after(now + longest, lease.expires);
  state.reason.resize(std::min(state.reason.size(), HostState::max_reason));
  state.said.resize(std::min(state.said.size(), HostState::max_said));
}

}  // namespace

std::string encode_host(const HostState& state, const ClockPair& now) {
  Encoder encoder(now);
  encoder(1, micros(now.utc));
  encoder(2, micros(now.mono));
  encoder(3, now.boot);
  each_field(state, encoder);
  return seal({kHostLetter, kHostVersion, 1}, encoder.bytes());
}

Result<HostRecord> decode_host(std::string_view bytes, const ClockPair& now, Duration longest) {
  const auto fields = unseal(bytes, kHostLetter, kHostVersion);
  if (!fields) return Error{fields.error()};
  Decoder decoder(*fields);
  decoder.place(now);
  HostRecord record;
  each_field(record.state, decoder);
  if (!decoder.ok()) return Error{"the record's fields do not fit"};
  bound(record.state, now.mono, std::clamp(longest, Duration{0}, kCentury));
  record.saved = decoder.saved();
  return record;
}

}  // namespace sluice
