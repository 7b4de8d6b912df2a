// A time zone: what a clock on the wall shows there at any moment, summer time included. A plain
// value; proxy/zone_file.h reads one from the system's time zone database.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/result.h"
#include "policy/time.h"
#include "policy/zone_rule.h"

namespace sluice {

class Zone {
 public:
  Zone() = default;  // UTC
  // RFC 9636: a TZif file of version 2 or later.
  static Result<Zone> parse(std::string_view tzif);

  Duration offset(UtcTime moment) const;  // local = UTC + offset
  // When the wall clock shows this time since the epoch. One that is skipped is taken as the moment
  // of the jump, one that comes twice as its first.
  UtcTime when(Duration local) const;

 private:
  void extend(const ZoneRule& rule);

  Duration first_{};                 // before the first change
  std::vector<ZoneChange> changes_;  // in order
};

// From one reset to the next: the day or the month that a moment belongs to.
struct Span {
  UtcTime from, to;
  std::string name;  // "2026-03-12", "2026-03"
};
Span day_of(const Zone& zone, Duration reset, UtcTime moment);
Span month_of(const Zone& zone, Duration reset, UtcTime moment);

}  // namespace sluice
