#include "policy/working_hours.h"

#include <cstdio>

namespace sluice {
namespace {

using Days = std::chrono::days;

std::string clock_text(Duration time) {
  const auto minutes = std::chrono::floor<std::chrono::minutes>(time).count();
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d", static_cast<int>(minutes / 60),
                static_cast<int>(minutes % 60));
  return text;
}

bool is_day(const WorkingHours& hours, std::int64_t day) {
  const auto weekday = std::chrono::weekday(std::chrono::sys_days(Days(day))).iso_encoding() - 1;
  return (hours.days >> weekday & 1) != 0;
}

}  // namespace

std::optional<Duration> parse_time_of_day(std::string_view text) {
  const auto digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  if (!digit(0) || !digit(1) || !digit(3) || !digit(4)) return std::nullopt;
  const int hour = (text[0] - '0') * 10 + (text[1] - '0');
  const int minute = (text[3] - '0') * 10 + (text[4] - '0');
  if (minute > 59 || hour > 24 || (hour == 24 && minute > 0)) return std::nullopt;
  return std::chrono::hours(hour) + std::chrono::minutes(minute);
}

Result<HourRange> parse_hour_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto from = parse_time_of_day(text.substr(0, dash));
    const auto to = parse_time_of_day(text.substr(dash + 1));
    if (from && to && *from < Days(1)) return HourRange{*from, *to};
  }
  return Error{"\"" + std::string(text) + "\" is no range of hours, such as \"08:00-20:00\""};
}

bool are_working(const WorkingHours& hours, const Zone& zone, UtcTime now) {
  if (hours.ranges.empty()) return true;
  const Duration local = now.time_since_epoch() + zone.offset(now);
  const std::int64_t today = std::chrono::floor<Days>(local).count();
  const Duration time = local - Days(today);
  for (const HourRange& range : hours.ranges) {
    if (range.from < range.to) {
      if (time >= range.from && time < range.to && is_day(hours, today)) return true;
    } else {
      if (time >= range.from && is_day(hours, today)) return true;
      if (time < range.to && is_day(hours, today - 1)) return true;
    }
  }
  return false;
}

std::string in_words(const WorkingHours& hours) {
  std::string text;
  for (const HourRange& range : hours.ranges) {
    text += (text.empty() ? "" : ", ") + clock_text(range.from) + "-" + clock_text(range.to);
  }
  text += " " + hours.zone;
  if (hours.days == 0x7f) return text;
  std::string days;
  for (std::size_t i = 0; i < std::size(kDayNames); ++i) {
    if ((hours.days >> i & 1) == 0) continue;
    days += (days.empty() ? " on " : ", ") + std::string(kDayNames[i]);
  }
  return text + days;
}

}  // namespace sluice
