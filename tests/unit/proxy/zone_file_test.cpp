// Days and months on a wall clock, against what is known of some zones.
#include "proxy/zone_file.h"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

UtcTime utc(int year, unsigned month, unsigned day, int hour = 0, int minute = 0) {
  const std::chrono::sys_days date = std::chrono::year(year) / month / day;
  return UtcTime{std::chrono::duration_cast<Duration>(date.time_since_epoch()) +
                 std::chrono::hours(hour) + std::chrono::minutes(minute)};
}

Zone zone_of(const char* name) {
  auto zone = load_zone(name);
  REQUIRE_MESSAGE(zone, name);
  return *zone;
}

}  // namespace

TEST_CASE("zone: days with 23, 24 and 25 hours") {
  const Zone berlin = zone_of("Europe/Berlin");
  struct Row {
    const char* name;
    Duration reset;
    UtcTime moment, from, to;
    const char* day;
  };
  const Row rows[] = {
      {"winter", 0h, utc(2026, 1, 15, 12), utc(2026, 1, 14, 23), utc(2026, 1, 15, 23),
       "2026-01-15"},
      {"just before midnight", 0h, utc(2026, 1, 15, 22, 59), utc(2026, 1, 14, 23),
       utc(2026, 1, 15, 23), "2026-01-15"},
      {"midnight", 0h, utc(2026, 1, 15, 23), utc(2026, 1, 15, 23), utc(2026, 1, 16, 23),
       "2026-01-16"},
      {"23 hours", 0h, utc(2026, 3, 29, 12), utc(2026, 3, 28, 23), utc(2026, 3, 29, 22),
       "2026-03-29"},
      {"25 hours", 0h, utc(2026, 10, 25, 12), utc(2026, 10, 24, 22), utc(2026, 10, 25, 23),
       "2026-10-25"},
      {"a reset that is skipped: from the jump", 2h + 30min, utc(2026, 3, 29, 12),
       utc(2026, 3, 29, 1), utc(2026, 3, 30, 0, 30), "2026-03-29"},
      {"a reset that comes twice: the first", 2h + 30min, utc(2026, 10, 25, 12),
       utc(2026, 10, 25, 0, 30), utc(2026, 10, 26, 1, 30), "2026-10-25"},
      {"between the two", 2h + 30min, utc(2026, 10, 25, 1, 15), utc(2026, 10, 25, 0, 30),
       utc(2026, 10, 26, 1, 30), "2026-10-25"},
      {"before a late reset it is still yesterday", 6h, utc(2026, 1, 15, 4), utc(2026, 1, 14, 5),
       utc(2026, 1, 15, 5), "2026-01-14"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Span span = day_of(berlin, row.reset, row.moment);
    CHECK(span.from == row.from);
    CHECK(span.to == row.to);
    CHECK(span.name == row.day);
  }
}

TEST_CASE("zone: months") {
  const Zone new_york = zone_of("America/New_York");
  const Span march = month_of(new_york, 0h, utc(2026, 3, 20));
  CHECK(march.name == "2026-03");
  CHECK(march.from == utc(2026, 3, 1, 5));
  CHECK(march.to == utc(2026, 4, 1, 4));
  CHECK(month_of(new_york, 0h, utc(2026, 4, 1, 3, 59)).name == "2026-03");
  CHECK(month_of(Zone(), 0h, utc(2026, 12, 31, 23)).to == utc(2027, 1, 1));
  CHECK(month_of(Zone(), 6h, utc(2027, 1, 1, 5)).name == "2026-12");
}

TEST_CASE("zone: every quarter of an hour of a year belongs to the one day that holds it") {
  for (const char* name : {"UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu",
                           "Australia/Lord_Howe", "Pacific/Apia"}) {
    CAPTURE(name);
    const Zone zone = zone_of(name);
    for (const Duration reset : {Duration(0h), Duration(2h + 30min), Duration(23h + 59min)}) {
      Span before = day_of(zone, reset, utc(2026, 1, 1));
      for (UtcTime at = utc(2026, 1, 1); at < utc(2027, 1, 1); at += 15min) {
        const Span span = day_of(zone, reset, at);
        REQUIRE(span.from <= at);
        REQUIRE(at < span.to);
        const bool seamless = span.from == before.from || span.from == before.to;
        REQUIRE(seamless);
        before = span;
      }
    }
  }
}

TEST_CASE("zone: what is none") {
  for (const char* name : {"", "Europe/Nowhere", "../../etc/passwd", "/etc/localtime", "Europe"}) {
    CAPTURE(name);
    CHECK_FALSE(load_zone(name));
  }
  CHECK_FALSE(Zone::parse("TZif2"));
  CHECK_FALSE(Zone::parse(std::string(200, '\xff')));
}
