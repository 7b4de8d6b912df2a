// The forms in which origins write numbers, times and quotas in header fields. Knows nothing of
// field names: policy/signal.cpp says which field holds which form. Pure, bounded, allocates
// nothing; any bytes give a value or nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "policy/time.h"

namespace sluice {

std::string_view trim_spaces(std::string_view text);  // SP and HTAB, at both ends

// "12", "12.5": no sign, no exponent, at most 18 digits before the point.
struct Decimal {
  std::uint64_t whole = 0;
  std::uint32_t millionths = 0;
};
std::optional<Decimal> read_decimal(std::string_view text);

// A count, of which the first element of a list is enough ("100, 100;w=60"). Fractions are cut.
std::optional<std::uint64_t> read_count(std::string_view text);

// "350" milliseconds from now.
std::optional<Duration> read_milliseconds(std::string_view text);

// A "reset" value in any of its forms: seconds, epoch seconds or milliseconds, "6m0s", ISO 8601,
// HTTP-date. Negative or unreadable is nothing, a past time is now. `date` is the response's.
struct Reset {
  Duration wait{};
  bool absolute = false;  // it was a date, not a distance
  bool operator==(const Reset&) const = default;
};
std::optional<Reset> read_reset(std::string_view text, UtcTime date);

// One member of RateLimit or RateLimit-Policy, in any draft:
// `"burst";q=100;w=60` · `"default";r=50;t=30` · `100;w=60` · `limit=100, remaining=50, reset=30`.
struct RateItem {
  std::string_view name;  // empty for the last form, whose members are put together as one
  std::optional<std::uint64_t> quota, remaining, reset_s, window_s;
};
struct RateItems {
  static constexpr std::size_t max = 6;  // what follows is not read
  std::array<RateItem, max> item;
  std::size_t count = 0;
};
// Nothing when any part is malformed: then the field is to be ignored whole.
std::optional<RateItems> read_rate_items(std::string_view text);

// Not a secret and not a checksum: tells names apart. Never 0 for a text that is not empty.
std::uint32_t name_hash(std::string_view text);

}  // namespace sluice
