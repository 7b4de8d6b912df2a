// Rules for summer time, against what is known of some zones.
#include "policy/zone_rule.h"

#include <doctest/doctest.h>

#include <string>

#include "policy/zone.h"

using namespace sluice;

namespace {

UtcTime utc(int year, unsigned month, unsigned day, Duration time = {}) {
  const std::chrono::sys_days date = std::chrono::year(year) / month / day;
  return UtcTime{std::chrono::duration_cast<Duration>(date.time_since_epoch()) + time};
}

}  // namespace

TEST_CASE("zone rule: when the clocks change") {
  struct Row {
    const char* rule;
    int year;
    UtcTime first;
    Duration then;
    UtcTime second;
    Duration at_last;
  };
  const Row rows[] = {
      {"CET-1CEST,M3.5.0,M10.5.0/3", 2026, utc(2026, 3, 29, 1h), 2h, utc(2026, 10, 25, 1h), 1h},
      {"EST5EDT,M3.2.0,M11.1.0", 2026, utc(2026, 3, 8, 7h), -4h, utc(2026, 11, 1, 6h), -5h},
      {"AEST-10AEDT,M10.1.0,M4.1.0/3", 2026, utc(2026, 4, 4, 16h), 10h, utc(2026, 10, 3, 16h), 11h},
      {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 2026, utc(2026, 4, 4, 15h), 10h + 30min,
       utc(2026, 10, 3, 15h + 30min), 11h},
      {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2026, utc(2026, 3, 29, 1h), -1h, utc(2026, 10, 25, 1h),
       -2h},
      {"AAA0BBB,J60,J300", 2028, utc(2028, 3, 1, 2h), 1h, utc(2028, 10, 27, 1h), 0h},
      {"AAA0BBB,59/0,300/24:30", 2028, utc(2028, 2, 29), 1h, utc(2028, 10, 27, 23h + 30min), 0h},
  };
  for (const Row& row : rows) {
    CAPTURE(row.rule);
    const auto rule = parse_zone_rule(row.rule);
    REQUIRE(rule);
    const auto changes = rule->changes(row.year);
    CHECK(changes[0].at == row.first);
    CHECK(changes[0].offset == row.then);
    CHECK(changes[1].at == row.second);
    CHECK(changes[1].offset == row.at_last);
  }
}

TEST_CASE("zone rule: what is none") {
  for (const char* wrong :
       {"", "CET-1", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0,M10.5.0/3x",
        "CE-1CEST,M3.5.0,M10.5.0", "CETCEST,M3.5.0,M10.5.0", "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J366",
        "CET-1CEST,366,1", "CET-1CEST,M3.5.0/168,M10.5.0", "CET-1CEST,M3.5.0/2:60,M10.5.0",
        "<+01-1<+02>,M3.5.0,M10.5.0", "CET-99999CEST,M3.5.0,M10.5.0", "CET-1CEST,M3,M10"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_zone_rule(wrong));
  }
}

TEST_CASE("zone rule: a file that has nothing but a rule") {
  // No change, one type: an hour east.
  const std::string counts("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4", 24);
  const std::string part = "TZif2" + std::string(15, '\0') + counts +
                           std::string("\0\0\x0e\x10\0\0", 6) + std::string("CET\0", 4);
  const auto zone = Zone::parse(part + part + "\nCET-1CEST,M3.5.0,M10.5.0/3\n");
  REQUIRE(zone);
  CHECK(zone->offset(utc(2026, 1, 1)) == 1h);
  CHECK(zone->offset(utc(2026, 3, 29, 59min)) == 1h);
  CHECK(zone->offset(utc(2026, 3, 29, 1h)) == 2h);
  CHECK(zone->offset(utc(2026, 10, 25, 1h)) == 1h);
  CHECK(zone->offset(utc(2090, 7, 1)) == 2h);
  CHECK_FALSE(Zone::parse(part + part + "\nCET-1CEST,M3\n"));
  const auto fixed = Zone::parse(part + part + "\nCET-1\n");
  REQUIRE(fixed);
  CHECK(fixed->offset(utc(2026, 7, 1)) == 1h);
}
