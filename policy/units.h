// Durations and sizes as people write and read them: "90s", "64KiB", "2 h 5 min". Pure text work,
// bounded for any input; knows nothing of TOML or of what the values are for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/result.h"
#include "policy/time.h"

namespace sluice {

// Ten years: far beyond any sensible setting, far below overflow in every sum made of a few.
inline constexpr Duration kLongestDuration = std::chrono::hours(24 * 3650);
inline constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 40;

// A number and a unit: ms, s, m, h or d. Fractions are allowed ("1.5h"), signs are not.
Result<Duration> parse_duration(std::string_view text);

// Bytes: a whole number, or one with B, KB, MB, GB (thousands) or KiB, MiB, GiB (1024s).
Result<std::uint64_t> parse_size(std::string_view text);

// "120 ms", "1.2 s", "41 s", "2 h 5 min", "3 d 4 h": two units at most, rounded up, so that
// waiting as long as it says is long enough. Nothing and less than nothing are "0 s".
std::string format_duration(Duration duration);

}  // namespace sluice
