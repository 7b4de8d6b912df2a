// Any bytes give a date between the years 0 and 9999, or nothing; a date that is written again is
// read as the same moment.
#include "policy/http_date.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "policy/dialects.h"
#include "policy/units.h"

namespace {

using namespace sluice;

constexpr UtcTime kNow{1773309570s};

void require(bool truth) {
  if (!truth) std::abort();
}

void check(UtcTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch());
  const auto days = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  const int year = static_cast<int>(date.year());
  require(year >= -1 && year <= 10000);  // a zone may move it over the edge
  if (year < 0 || year > 9999) return;
  const std::chrono::hh_mm_ss clock(seconds - days);
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", year,
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  require(parse_iso_date(text.data()) == UtcTime(seconds));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto time = parse_http_date(bytes, kNow)) check(*time);
  if (const auto time = parse_iso_date(bytes)) check(*time);
  if (const auto reset = read_reset(bytes, kNow)) {
    require(reset->wait >= Duration(0) && reset->wait <= kLongestDuration + 1s);
  }
  if (const auto wait = parse_duration(bytes))
    require(*wait >= 0s && *wait <= kLongestDuration + 24h);
  if (const auto bytes_count = parse_size(bytes)) require(*bytes_count <= kLargestSize);
  if (const auto items = read_rate_items(bytes)) require(items->count <= RateItems::max);
  return 0;
}
