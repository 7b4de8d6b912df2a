#include "policy/dialects.h"

#include <algorithm>

#include "policy/http_date.h"
#include "policy/units.h"

namespace sluice {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The longest run at the start of `text` that is a decimal number is cut off it.
std::optional<Decimal> cut_decimal(std::string_view& text) {
  Decimal value;
  std::size_t n = 0;
  for (; n < text.size() && is_digit(text[n]); ++n) {
    // What is longer is as good as endless.
    constexpr std::uint64_t most = 1'000'000'000'000'000'000;
    value.whole = std::min(value.whole * 10 + static_cast<std::uint64_t>(text[n] - '0'), most);
  }
  if (n == 0) return std::nullopt;
  if (n + 1 < text.size() && text[n] == '.' && is_digit(text[n + 1])) {
    std::uint32_t unit = 100'000;
    for (++n; n < text.size() && is_digit(text[n]); ++n, unit /= 10) {
      value.millionths += unit * static_cast<std::uint32_t>(text[n] - '0');
    }
  }
  text.remove_prefix(n);
  return value;
}

// `value` of a unit, at most the longest duration we ever deal with.
Duration times(const Decimal& value, Duration unit) {
  const auto most = static_cast<std::uint64_t>(kLongestDuration / unit);
  if (value.whole >= most) return kLongestDuration;
  return unit * static_cast<std::int64_t>(value.whole) + unit * value.millionths / 1'000'000;
}

// The units of Go's time.Duration, and days. Longer names first: "m" begins "ms".
struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
constexpr Unit units[] = {
    {"ns", 1},
    {"us", 1'000},
    {"µs", 1'000},
    {"μs", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
    {"d", 86'400'000'000'000},
};

// "6m0s", "12ms", "1h2m3.5s"
std::optional<Duration> read_go_duration(std::string_view text) {
  Duration sum{};
  constexpr int most_parts = 8;
  for (int part = 0; part < most_parts; ++part) {
    const auto number = cut_decimal(text);
    if (!number) return std::nullopt;
    const auto* unit = std::find_if(std::begin(units), std::end(units),
                                    [&](const Unit& u) { return text.starts_with(u.name); });
    if (unit == std::end(units)) return std::nullopt;
    text.remove_prefix(unit->name.size());
    const auto microseconds = unit->nanoseconds / 1000;
    sum += microseconds > 0 ? times(*number, Duration(microseconds))
                            : times(*number, Duration(1)) / 1000 + Duration(1);
    sum = std::min(sum, kLongestDuration);
    if (text.empty()) return sum;
  }
  return std::nullopt;
}

Reset until(UtcTime at, UtcTime date) {
  return {std::clamp<Duration>(at - date, Duration(0), kLongestDuration), true};
}

}  // namespace

std::string_view trim_spaces(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<Decimal> read_decimal(std::string_view text) {
  text = trim_spaces(text);
  const auto value = cut_decimal(text);
  return text.empty() ? value : std::nullopt;
}

std::optional<std::uint64_t> read_count(std::string_view text) {
  const auto value = read_decimal(text.substr(0, text.find_first_of(",;")));
  return value ? std::optional(value->whole) : std::nullopt;
}

std::optional<Duration> read_milliseconds(std::string_view text) {
  const auto value = read_decimal(text);
  return value ? std::optional(times(*value, 1ms)) : std::nullopt;
}

std::optional<Reset> read_reset(std::string_view text, UtcTime date) {
  text = trim_spaces(text);
  if (text.empty() || text.size() > 64) return std::nullopt;
  if (const auto number = read_decimal(text)) {
    constexpr std::uint64_t epoch_milliseconds = 1'000'000'000'000, epoch_seconds = 1'000'000'000;
    if (number->whole > epoch_milliseconds) {
      // Past the year 5138 the exact date is of no interest; the bound keeps it from overflowing.
      const auto ms = std::min<std::uint64_t>(number->whole, 100 * epoch_milliseconds);
      return until(UtcTime(1ms * static_cast<std::int64_t>(ms)), date);
    }
    if (number->whole > epoch_seconds) {
      return until(UtcTime(Duration(1s) * static_cast<std::int64_t>(number->whole) +
                           Duration(number->millionths)),
                   date);
    }
    return Reset{times(*number, 1s), false};
  }
  if (const auto duration = read_go_duration(text)) return Reset{*duration, false};
  if (const auto at = parse_iso_date(text)) return until(*at, date);
  if (const auto at = parse_http_date(text, date)) return until(*at, date);
  return std::nullopt;
}

namespace {

// As much of structured fields (RFC 8941) as the RateLimit fields use.
class ItemText {
 public:
  explicit ItemText(std::string_view text) : rest_(text) {}

  bool at_end() { return skip_spaces(), rest_.empty(); }
  bool take(char c) {
    skip_spaces();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // A string without its quotes, bytes without their colons, or a token or number; empty: none of
  // them is there.
  std::string_view word() {
    if (take('"')) return up_to('"');
    if (take(':')) return up_to(':');
    std::size_t n = 0;
    while (n < rest_.size() && is_word_char(rest_[n])) ++n;
    const auto text = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return text;
  }

 private:
  std::string_view up_to(char end) {
    const auto n = rest_.find(end);
    if (n == std::string_view::npos) return {};
    const auto text = rest_.substr(0, n);
    rest_.remove_prefix(n + 1);
    return text;
  }
  static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' ||
           c == '_' || c == '.' || c == '*' || c == '/' || c == ':' || c == '+';
  }
  void skip_spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t'))
      rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

// False when the parameter is one of ours and its value is not a number.
bool set_parameter(RateItem& item, std::string_view key, std::string_view value) {
  std::optional<std::uint64_t>* target = nullptr;
  if (key == "q" || key == "limit") target = &item.quota;
  if (key == "r" || key == "remaining") target = &item.remaining;
  if (key == "t" || key == "reset") target = &item.reset_s;
  if (key == "w" || key == "window") target = &item.window_s;
  if (!target) return true;
  const auto number = read_decimal(value);
  if (!number) return false;
  *target = number->whole;
  return true;
}

}  // namespace

std::optional<RateItems> read_rate_items(std::string_view field) {
  RateItems items;
  RateItem flat;
  ItemText text(field);
  for (bool more = !text.at_end(); more && items.count < RateItems::max - 1;) {
    RateItem item;
    item.name = text.word();
    if (item.name.empty()) return std::nullopt;
    RateItem& target = text.take('=') ? flat : item;
    if (&target == &flat && !set_parameter(flat, item.name, text.word())) return std::nullopt;
    if (const auto number = read_decimal(item.name)) item.quota = number->whole;
    constexpr int most_parameters = 16;
    for (int i = 0; i < most_parameters && text.take(';'); ++i) {
      const auto key = text.word();
      if (key.empty()) return std::nullopt;
      const auto value = text.take('=') ? text.word() : "";
      if (!set_parameter(target, key, value)) return std::nullopt;
    }
    if (&target == &item) items.item[items.count++] = item;
    more = text.take(',');
    if (!more && !text.at_end()) return std::nullopt;
  }
  if (flat.quota || flat.remaining || flat.reset_s) items.item[items.count++] = flat;
  return items;
}

std::uint32_t name_hash(std::string_view text) {
  if (text.empty()) return 0;
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash == 0 ? 1 : hash;
}

}  // namespace sluice
