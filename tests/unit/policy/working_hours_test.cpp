// Hours in which use is expected, with days, midnight and summer time.
#include "policy/working_hours.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

using namespace sluice;

namespace {

Zone berlin() {
  std::ifstream in("/usr/share/zoneinfo/Europe/Berlin", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  auto zone = Zone::parse(bytes);
  REQUIRE(zone);
  return *zone;
}

UtcTime utc(int year, unsigned month, unsigned day, Duration time) {
  const std::chrono::sys_days date{std::chrono::year(year) / month / day};
  return UtcTime{Duration(date.time_since_epoch()) + time};
}

WorkingHours hours(const char* range, std::uint8_t days = 0x7f) {
  const auto parsed = parse_hour_range(range);
  REQUIRE(parsed);
  return {{*parsed}, days, "UTC"};
}

}  // namespace

TEST_CASE("working hours: what is a range") {
  for (const char* good : {"08:00-20:00", "22:00-06:00", "00:00-24:00", "12:30-12:30"}) {
    CAPTURE(good);
    CHECK(parse_hour_range(good));
  }
  for (const char* bad : {"", "8-20", "08:00", "08:00-25:00", "24:00-08:00", "08:60-09:00",
                          "08:00 - 20:00", "24:01-24:00", "08:00-20:00x"}) {
    CAPTURE(bad);
    const auto parsed = parse_hour_range(bad);
    REQUIRE(!parsed);
    CHECK(parsed.error().find("08:00-20:00") != std::string::npos);
  }
}

TEST_CASE("working hours: by the clock and the day") {
  struct Row {
    const char* name;
    WorkingHours hours;
    UtcTime at;
    bool working;
  };
  const std::uint8_t weekdays = 0x1f, friday = 0x10;
  // 2026-03-13 is a Friday.
  const Row rows[] = {
      {"none given: always", {}, utc(2026, 3, 13, 3h), true},
      {"before", hours("08:00-20:00"), utc(2026, 3, 13, 8h - 1us), false},
      {"at the beginning", hours("08:00-20:00"), utc(2026, 3, 13, 8h), true},
      {"at the end", hours("08:00-20:00"), utc(2026, 3, 13, 20h), false},
      {"all day", hours("00:00-24:00"), utc(2026, 3, 13, 24h - 1us), true},
      {"at the weekend", hours("08:00-20:00", weekdays), utc(2026, 3, 14, 12h), false},
      {"over midnight, late", hours("22:00-06:00"), utc(2026, 3, 13, 23h), true},
      {"over midnight, early", hours("22:00-06:00"), utc(2026, 3, 13, 5h), true},
      {"over midnight, at noon", hours("22:00-06:00"), utc(2026, 3, 13, 12h), false},
      {"the night that began on Friday", hours("22:00-06:00", friday), utc(2026, 3, 14, 5h), true},
      {"the night that began on Thursday", hours("22:00-06:00", friday), utc(2026, 3, 13, 5h),
       false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(are_working(row.hours, Zone(), row.at) == row.working);
  }
}

TEST_CASE("working hours: summer time moves them") {
  const Zone zone = berlin();
  const WorkingHours day = hours("08:00-20:00");
  // UTC+1 until 2026-03-29 01:00 UTC, then UTC+2.
  CHECK(!are_working(day, zone, utc(2026, 3, 28, 6h + 30min)));
  CHECK(are_working(day, zone, utc(2026, 3, 28, 7h + 30min)));
  CHECK(are_working(day, zone, utc(2026, 3, 28, 18h + 30min)));
  CHECK(are_working(day, zone, utc(2026, 3, 29, 6h + 30min)));
  CHECK(!are_working(day, zone, utc(2026, 3, 29, 18h + 30min)));
  // The hour that is skipped, and the one that comes twice on 2026-10-25.
  const WorkingHours night = hours("02:00-03:00");
  CHECK(!are_working(night, zone, utc(2026, 3, 29, 1h)));
  CHECK(are_working(night, zone, utc(2026, 10, 25, 0h + 30min)));
  CHECK(are_working(night, zone, utc(2026, 10, 25, 1h + 30min)));
}

TEST_CASE("working hours: in words") {
  WorkingHours some = hours("08:00-12:00", 0x21);
  some.ranges.push_back({13h, 24h});
  some.zone = "Europe/Berlin";
  CHECK(in_words(some) == "08:00-12:00, 13:00-24:00 Europe/Berlin on mon, sat");
  CHECK(in_words(hours("22:00-06:00")) == "22:00-06:00 UTC");
}
