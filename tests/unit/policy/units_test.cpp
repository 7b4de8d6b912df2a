#include "policy/units.h"

#include <doctest/doctest.h>

#include <string>

using namespace sluice;

TEST_CASE("units: durations as people write them") {
  struct Row {
    std::string text;
    Duration duration;
  };
  const Row rows[] = {
      {"0s", 0s},       {"1ms", 1ms},
      {"90s", 90s},     {"10m", 10min},
      {"1h", 1h},       {"48h", 48h},
      {"1d", 24h},      {"1.5h", 90min},
      {"0.001s", 1ms},  {"0.000001s", 1us},
      {"2.25d", 54h},   {"007s", 7s},
      {"0.5ms", 500us}, {"3650d", kLongestDuration},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto parsed = parse_duration(row.text);
    REQUIRE(parsed);
    CHECK(*parsed == row.duration);
  }
}

TEST_CASE("units: what is no duration") {
  const std::string how =
      " is not a duration: write a number and ms, s, m, h or d, such as \"90s\"";
  for (const std::string text : {"",     "s",     "5",    "5 s",        " 5s",
                                 "5s ",  "-5s",   "+5s",  "5S",         "5sec",
                                 "5min", "1h30m", ".5s",  "1.s",        "1..5s",
                                 "1e3s", "0x5s",  "1,5s", "1.0000001s", "1000000000000000s"}) {
    CAPTURE(text);
    const auto parsed = parse_duration(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error() == "\"" + text + "\"" + how);
  }
  for (const std::string text : {"3651d", "100000000h", "999999999999999s"}) {
    CAPTURE(text);
    CHECK(parse_duration(text).error() == "\"" + text + "\" is longer than ten years");
  }
  CHECK(parse_duration("\n\x7f" + std::string(60, 'x')).error() ==
        "\"??" + std::string(38, 'x') + "…\"" + how);
}

TEST_CASE("units: sizes as people write them") {
  struct Row {
    std::string text;
    std::uint64_t bytes;
  };
  const Row rows[] = {
      {"0", 0},
      {"17", 17},
      {"17B", 17},
      {"64KiB", 65536},
      {"64KB", 64000},
      {"64kB", 64000},
      {"1MiB", 1 << 20},
      {"1MB", 1000000},
      {"2GB", 2000000000},
      {"1GiB", 1 << 30},
      {"1024GiB", kLargestSize},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto parsed = parse_size(row.text);
    REQUIRE(parsed);
    CHECK(*parsed == row.bytes);
  }
  for (const std::string text :
       {"", "KiB", "-1", "1.5MiB", "64 KiB", "64kib", "64K", "1TB", "0x10"}) {
    CAPTURE(text);
    CHECK(parse_size(text).error() ==
          "\"" + text + "\" is not a size: write bytes, or a number and KiB, MiB, KB or MB");
  }
  CHECK(parse_size("1025GiB").error() == "\"1025GiB\" is more than 1024 GiB");
  CHECK(parse_size("999999999999999GiB").error() == "\"999999999999999GiB\" is more than 1024 GiB");
}

TEST_CASE("units: durations as people read them, never shorter than they are") {
  struct Row {
    Duration duration;
    std::string text;
  };
  const Row rows[] = {
      {Duration::min(), "0 s"},
      {-1us, "0 s"},
      {0s, "0 s"},
      {1us, "1 ms"},
      {120ms, "120 ms"},
      {999ms, "999 ms"},
      {999001us, "1 s"},
      {1s, "1 s"},
      {1001ms, "1.1 s"},
      {1200ms, "1.2 s"},
      {9900ms, "9.9 s"},
      {9901ms, "10 s"},
      {10s, "10 s"},
      {41s, "41 s"},
      {40s + 1us, "41 s"},
      {59s + 1ms, "1 min"},
      {60s, "1 min"},
      {61s, "1 min 1 s"},
      {15min, "15 min"},
      {59min + 59s, "59 min 59 s"},
      {59min + 59s + 1us, "1 h"},
      {1h, "1 h"},
      {1h + 1s, "1 h 1 min"},
      {2h + 5min, "2 h 5 min"},
      {23h + 59min + 1s, "1 d"},
      {24h, "1 d"},
      {24h + 1us, "1 d 1 h"},
      {76h, "3 d 4 h"},
      {kLongestDuration, "3650 d"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(format_duration(row.duration) == row.text);
  }
}
