#include "policy/zone_rule.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr unsigned kMostHours = 167;  // RFC 9636 §3.3.1: up to a week either way

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Takes the parts of a rule off its front, one after the other. POSIX.1 §8.3, TZ.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  bool next_is(char c) const { return text_.starts_with(c); }
  bool take(char c) {
    if (!next_is(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  // "CET", "<+0330>"
  bool take_name() {
    if (next_is('<')) {
      const auto end = text_.find('>');
      if (end == std::string_view::npos) return false;
      text_.remove_prefix(end + 1);
      return true;
    }
    const auto end = std::find_if_not(text_.begin(), text_.end(), is_letter);
    const auto length = static_cast<std::size_t>(end - text_.begin());
    text_.remove_prefix(length);
    return length >= 3;
  }
  std::optional<unsigned> take_number(unsigned least, unsigned most) {
    unsigned value = 0;
    std::size_t digits = 0;
    for (; digits < text_.size() && is_digit(text_[digits]); ++digits) {
      if (digits >= 3) return std::nullopt;
      value = value * 10 + static_cast<unsigned>(text_[digits] - '0');
    }
    if (digits == 0 || value < least || value > most) return std::nullopt;
    text_.remove_prefix(digits);
    return value;
  }
  // "-1", "5:30", "+03:30:00"
  std::optional<Duration> take_time() {
    const bool negative = take('-');
    if (!negative) take('+');
    const auto hours = take_number(0, kMostHours);
    if (!hours) return std::nullopt;
    Duration time = std::chrono::hours(*hours);
    for (const Duration unit : {Duration(1min), Duration(1s)}) {
      if (!take(':')) break;
      const auto count = take_number(0, 59);
      if (!count) return std::nullopt;
      time += *count * unit;
    }
    return negative ? -time : time;
  }
  // "M3.5.0", "J60/2", "59/-1"
  std::optional<ZoneRule::Date> take_date() {
    using Kind = ZoneRule::Date::Kind;
    ZoneRule::Date date{.time = 2h};
    std::optional<unsigned> month = 1, week = 1, day;
    if (take('M')) {
      month = take_number(1, 12);
      week = month && take('.') ? take_number(1, 5) : std::nullopt;
      day = week && take('.') ? take_number(0, 6) : std::nullopt;
    } else if (take('J')) {
      date.kind = Kind::no_leap;
      day = take_number(1, 365);
    } else {
      date.kind = Kind::from_zero;
      day = take_number(0, 365);
    }
    if (!month || !week || !day) return std::nullopt;
    date.month = *month;
    date.week = *week;
    date.day = *day;
    if (!take('/')) return date;
    const auto time = take_time();
    if (!time) return std::nullopt;
    date.time = *time;
    return date;
  }

 private:
  std::string_view text_;
};

// What the wall clock shows then, since the epoch.
Duration wall_time(const ZoneRule::Date& date, std::chrono::year year) {
  using Kind = ZoneRule::Date::Kind;
  using namespace std::chrono;
  sys_days day = year / January / 1;
  switch (date.kind) {
    case Kind::weekday: {
      const year_month month = year / std::chrono::month(date.month);
      const std::chrono::weekday wanted(date.day);
      day = date.week == 5 ? sys_days(month / wanted[last]) : sys_days(month / wanted[date.week]);
      break;
    }
    case Kind::no_leap:
      day += days(date.day - 1 + (year.is_leap() && date.day >= 60 ? 1 : 0));
      break;
    case Kind::from_zero: day += days(date.day); break;
  }
  return day.time_since_epoch() + date.time;
}

}  // namespace

std::array<ZoneChange, 2> ZoneRule::changes(int year) const {
  const ZoneChange to_summer{UtcTime{wall_time(begin, std::chrono::year(year)) - standard}, summer};
  const ZoneChange back{UtcTime{wall_time(end, std::chrono::year(year)) - summer}, standard};
  if (to_summer.at <= back.at) return {to_summer, back};
  return {back, to_summer};
}

std::optional<ZoneRule> parse_zone_rule(std::string_view text) {
  RuleReader reader(text);
  ZoneRule rule;
  if (!reader.take_name()) return std::nullopt;
  const auto west = reader.take_time();  // POSIX counts to the west
  if (!west || !reader.take_name()) return std::nullopt;
  rule.standard = -*west;
  rule.summer = rule.standard + 1h;
  if (!reader.next_is(',')) {
    const auto summer_west = reader.take_time();
    if (!summer_west) return std::nullopt;
    rule.summer = -*summer_west;
  }
  for (ZoneRule::Date* date : {&rule.begin, &rule.end}) {
    if (!reader.take(',')) return std::nullopt;
    const auto taken = reader.take_date();
    if (!taken) return std::nullopt;
    *date = *taken;
  }
  return reader.at_end() ? std::optional(rule) : std::nullopt;
}

}  // namespace sluice
