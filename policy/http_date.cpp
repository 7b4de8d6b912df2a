#include "policy/http_date.h"

#include <array>
#include <cstddef>

namespace sluice {
namespace {

using Days = std::chrono::days;

// Reads a date from left to right. The first thing that does not fit makes all of it a failure.
class DateText {
 public:
  explicit DateText(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }
  bool next_is(char c) const { return ok_ && !rest_.empty() && rest_.front() == c; }
  bool next_is_digit() const { return ok_ && !rest_.empty() && is_digit(rest_.front()); }

  bool take(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) { ok_ = take(c) && ok_; }
  void expect(std::string_view text) {
    for (char c : text) expect(c);
  }

  int number(std::size_t digits) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (!next_is_digit()) return ok_ = false, 0;
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }

  // What is left of a name: letters, any number of them.
  std::string_view letters() {
    std::size_t n = 0;
    while (n < rest_.size() && is_letter(rest_[n])) ++n;
    const auto name = rest_.substr(0, n);
    rest_.remove_prefix(n);
    ok_ = ok_ && n > 0;
    return name;
  }

  unsigned month() {
    constexpr std::string_view names = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const auto name = letters();
    if (name.size() == 3) {
      for (unsigned m = 0; m < 12; ++m) {
        if (names.substr(std::size_t{3} * m, 3) == name) return m + 1;
      }
    }
    return ok_ = false, 1u;
  }

  Duration time_of_day() {
    const int hours = number(2);
    expect(':');
    const int minutes = number(2);
    expect(':');
    return clock(hours, minutes, number(2));
  }

  // A leap second is the last second of its minute: nothing here needs to tell them apart.
  Duration clock(int hours, int minutes, int seconds) {
    if (hours > 23 || minutes > 59 || seconds > 60) ok_ = false;
    return std::chrono::hours(hours) + std::chrono::minutes(minutes) +
           std::chrono::seconds(seconds == 60 ? 59 : seconds);
  }

  std::optional<UtcTime> at(int year, unsigned month, int day, Duration time) const {
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!ok_ || !date.ok()) return std::nullopt;
    return UtcTime(std::chrono::sys_days(date).time_since_epoch() + time);
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

  std::string_view rest_;
  bool ok_ = true;
};

// "Sun, 06 Nov 1994 08:49:37 GMT" and, with the year in two digits and the day's name in full,
// "Sunday, 06-Nov-94 08:49:37 GMT".
std::optional<UtcTime> after_comma(DateText text, UtcTime now) {
  text.expect(", ");
  const int day = text.number(2);
  const bool obsolete = text.next_is('-');
  const char separator = obsolete ? '-' : ' ';
  text.expect(separator);
  const unsigned month = text.month();
  text.expect(separator);
  int year = text.number(obsolete ? 2 : 4);
  text.expect(' ');
  const Duration time = text.time_of_day();
  text.expect(" GMT");
  if (!text.at_end()) return std::nullopt;
  if (obsolete) {
    const auto today = std::chrono::sys_days(std::chrono::floor<Days>(now.time_since_epoch()));
    const int this_year = static_cast<int>(std::chrono::year_month_day(today).year());
    year += this_year - this_year % 100;
    if (year > this_year + 50) year -= 100;
  }
  return text.at(year, month, day, time);
}

// "Sun Nov  6 08:49:37 1994"
std::optional<UtcTime> asctime_date(DateText text) {
  text.expect(' ');
  const unsigned month = text.month();
  text.expect(' ');
  const int day = text.take(' ') ? text.number(1) : text.number(2);
  text.expect(' ');
  const Duration time = text.time_of_day();
  text.expect(' ');
  const int year = text.number(4);
  if (!text.at_end()) return std::nullopt;
  return text.at(year, month, day, time);
}

}  // namespace

std::optional<UtcTime> parse_http_date(std::string_view text, UtcTime now) {
  DateText date(text);
  date.letters();
  return date.next_is(',') ? after_comma(date, now) : asctime_date(date);
}

std::optional<UtcTime> parse_iso_date(std::string_view whole) {
  DateText text(whole);
  const int year = text.number(4);
  text.expect('-');
  const int month = text.number(2);
  text.expect('-');
  const int day = text.number(2);
  if (!text.take('T') && !text.take('t')) text.expect(' ');
  const int hours = text.number(2);
  text.expect(':');
  const int minutes = text.number(2);
  int seconds = 0;
  Duration fraction{};
  if (text.take(':')) {
    seconds = text.number(2);
    if (text.take('.')) {
      Duration unit = 100ms;
      do {
        fraction += unit * text.number(1);
        unit /= 10;  // digits past the microsecond count nothing
      } while (text.next_is_digit());
    }
  }
  Duration offset{};
  if (!text.take('Z') && !text.take('z') && !text.at_end()) {
    const bool ahead = text.take('+');
    if (!ahead) text.expect('-');
    const int zone_hours = text.number(2);
    text.take(':');
    offset = text.clock(zone_hours, text.number(2), 0);
    if (!ahead) offset = -offset;
  }
  if (!text.at_end()) return std::nullopt;
  const Duration time = text.clock(hours, minutes, seconds) + fraction - offset;
  return text.at(year, static_cast<unsigned>(month), day, time);
}

}  // namespace sluice
