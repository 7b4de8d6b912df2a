// How summer time goes on after the last change that a time zone file lists: the rule in its last
// line, "CET-1CEST,M3.5.0,M10.5.0/3". Pure.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "policy/time.h"

namespace sluice {

struct ZoneChange {
  UtcTime at;
  Duration offset;  // local = UTC + offset, from then on
};

struct ZoneRule {
  struct Date {
    enum class Kind : std::uint8_t {
      weekday,    // the `week`-th `day` (0 is Sunday) of `month`; the fifth is the last
      no_leap,    // the day of the year from 1 on, not counting 29 February
      from_zero,  // the day of the year from 0 on, counting it
    };
    Kind kind = Kind::weekday;
    unsigned month = 1, week = 1, day = 0;
    Duration time{};  // of the wall clock; may be negative or more than a day
  };
  Duration standard{}, summer{};  // offsets
  Date begin, end;                // of summer time

  // Both of a year, in order.
  std::array<ZoneChange, 2> changes(int year) const;
};

// None: it is no rule with a summer time.
std::optional<ZoneRule> parse_zone_rule(std::string_view text);

}  // namespace sluice
