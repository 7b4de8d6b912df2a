#include "policy/units.h"

#include <algorithm>
#include <array>
#include <optional>

namespace sluice {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;  // in microseconds, or in bytes
};

constexpr std::array<Unit, 5> kTimes = {{{"ms", 1000},
                                         {"s", 1000000},
                                         {"m", 60 * 1000000LL},
                                         {"h", 3600 * 1000000LL},
                                         {"d", 86400 * 1000000LL}}};
constexpr std::array<Unit, 9> kSizes = {{{"", 1},
                                         {"B", 1},
                                         {"KB", 1000},
                                         {"kB", 1000},
                                         {"MB", 1000000},
                                         {"GB", 1000000000},
                                         {"KiB", 1 << 10},
                                         {"MiB", 1 << 20},
                                         {"GiB", 1 << 30}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// More digits than these are refused; they keep every product below 2^63.
constexpr std::size_t kWholeDigits = 15;
constexpr std::size_t kFractionDigits = 6;

std::optional<std::int64_t> take_digits(std::string_view& text, std::size_t most) {
  std::size_t n = 0;
  std::int64_t value = 0;
  for (; n < text.size() && is_digit(text[n]); ++n) {
    if (n == most) return std::nullopt;
    value = value * 10 + (text[n] - '0');
  }
  if (n == 0) return std::nullopt;
  text.remove_prefix(n);
  return value;
}

template <std::size_t N>
std::optional<std::int64_t> factor_of(std::string_view name, const std::array<Unit, N>& units) {
  const auto* unit = std::find_if(units.begin(), units.end(),
                                  [&](const Unit& candidate) { return candidate.name == name; });
  if (unit == units.end()) return std::nullopt;
  return unit->factor;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string out = "\"" + std::string(text.substr(0, kShown));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out + (text.size() > kShown ? "…\"" : "\"");
}

Error bad_duration(std::string_view text) {
  return {quoted(text) +
          " is not a duration: write a number and ms, s, m, h or d, such as \"90s\""};
}

Error bad_size(std::string_view text) {
  return {quoted(text) + " is not a size: write bytes, or a number and KiB, MiB, KB or MB"};
}

std::string two_units(std::int64_t total, std::int64_t per, const char* large, const char* small) {
  std::string out = std::to_string(total / per) + " " + large;
  if (total % per != 0) out += " " + std::to_string(total % per) + " " + small;
  return out;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  std::string_view rest = text;
  const auto whole = take_digits(rest, kWholeDigits);
  if (!whole) return bad_duration(text);
  std::int64_t fraction = 0;
  std::int64_t scale = 1;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    const std::size_t before = rest.size();
    const auto digits = take_digits(rest, kFractionDigits);
    if (!digits) return bad_duration(text);
    fraction = *digits;
    for (std::size_t i = rest.size(); i < before; ++i) scale *= 10;
  }
  const auto factor = factor_of(rest, kTimes);
  if (!factor) return bad_duration(text);
  if (*whole > kLongestDuration.count() / *factor) {
    return Error{quoted(text) + " is longer than ten years"};
  }
  return Duration(*whole * *factor + fraction * *factor / scale);
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::string_view rest = text;
  const auto whole = take_digits(rest, kWholeDigits);
  if (!whole) return bad_size(text);
  const auto factor = factor_of(rest, kSizes);
  if (!factor) return bad_size(text);
  if (*whole > static_cast<std::int64_t>(kLargestSize) / *factor) {
    return Error{quoted(text) + " is more than 1024 GiB"};
  }
  return static_cast<std::uint64_t>(*whole * *factor);
}

std::string format_duration(Duration duration) {
  using namespace std::chrono;
  if (duration <= 0s) return "0 s";
  if (const auto ms = ceil<milliseconds>(duration); ms < 1s) {
    return std::to_string(ms.count()) + " ms";
  }
  if (const auto tenths = ceil<std::chrono::duration<std::int64_t, std::deci>>(duration);
      tenths < 10s) {
    const std::int64_t n = tenths.count();
    const std::string whole = std::to_string(n / 10);
    return n % 10 == 0 ? whole + " s" : whole + "." + std::to_string(n % 10) + " s";
  }
  if (const auto s = ceil<seconds>(duration); s < 1min) return std::to_string(s.count()) + " s";
  if (const auto s = ceil<seconds>(duration); s < 1h) return two_units(s.count(), 60, "min", "s");
  if (const auto m = ceil<minutes>(duration); m < 24h) return two_units(m.count(), 60, "h", "min");
  return two_units(ceil<hours>(duration).count(), 24, "d", "h");
}

}  // namespace sluice
