// When use is expected: hours of the day, days of the week, on the clocks of one place. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/result.h"
#include "policy/time.h"
#include "policy/zone.h"

namespace sluice {

// On the wall clock, since midnight. One that ends where it begins or before runs over midnight.
struct HourRange {
  Duration from{}, to{};
  bool operator==(const HourRange&) const = default;
};

struct WorkingHours {
  std::vector<HourRange> ranges;  // empty: at any time
  std::uint8_t days = 0x7f;       // bit 0 is Monday; the day on which a range begins
  std::string zone = "UTC";
  bool operator==(const WorkingHours&) const = default;
};

// "00:00" to "24:00"
std::optional<Duration> parse_time_of_day(std::string_view text);
// "08:00-20:00", "22:00-06:00", "00:00-24:00"
Result<HourRange> parse_hour_range(std::string_view text);

bool are_working(const WorkingHours& hours, const Zone& zone, UtcTime now);

// "08:00-20:00 Europe/Berlin on mon, tue"; the days only when they are not all.
std::string in_words(const WorkingHours& hours);

inline constexpr std::string_view kDayNames[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

}  // namespace sluice
