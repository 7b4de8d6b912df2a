#include "policy/cost.h"

#include <algorithm>
#include <cmath>

#include "policy/path_pattern.h"

namespace sluice {
namespace {

constexpr Micros kUnit = 1'000'000;
constexpr int kMostDigits = 9;  // before the point: a billion is no price
constexpr int kDecimals = 6;    // of a unit, that count

bool are_digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// What stands behind the "e" of "5e-04".
std::optional<int> parse_exponent(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.size() > 4 || !are_digits(text)) return std::nullopt;
  int value = 0;
  for (const char c : text) value = value * 10 + (c - '0');
  return negative ? -value : value;
}

}  // namespace

Micros to_micros(double money) {
  return static_cast<Micros>(std::llround(money * static_cast<double>(kUnit)));
}

Micros request_cost(const CostRules& rules, std::string_view path) {
  path = path.substr(0, path.find('?'));
  double price = rules.per_request;
  for (const PathCost& other : rules.paths) {
    if (!path_matches(other.path, path)) continue;
    price = other.cost;
    break;
  }
  // Too little to count is not free.
  return price > 0 ? std::max<Micros>(to_micros(price), 1) : 0;
}

std::optional<Micros> parse_cost(std::string_view value) {
  value = trim(value);
  const std::string_view number = value.substr(0, value.find_first_of("eE"));
  const auto exponent = number.size() == value.size()
                            ? std::optional(0)
                            : parse_exponent(value.substr(number.size() + 1));
  const std::string_view whole = number.substr(0, number.find('.'));
  const std::string_view part = number.substr(std::min(number.size(), whole.size() + 1));
  if (!exponent || !are_digits(whole) || !are_digits(part)) return std::nullopt;
  if (whole.empty() && part.empty()) return std::nullopt;

  const std::string digits = std::string(whole) + std::string(part);
  const std::size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return 0;
  // Where the point stands in the digits; it may be far outside of them.
  const auto point = static_cast<std::int64_t>(whole.size()) + *exponent;
  if (point - static_cast<std::int64_t>(first) > kMostDigits) return std::nullopt;
  Micros amount = 0;
  for (auto i = static_cast<std::int64_t>(first); i < point + kDecimals; ++i) {
    const auto at = static_cast<std::size_t>(i);
    amount = amount * 10 + (at < digits.size() ? digits[at] - '0' : 0);
  }
  const auto last = static_cast<std::int64_t>(digits.find_last_not_of('0'));
  return amount + (last >= point + kDecimals ? 1 : 0);  // rather too much than forgotten
}

std::string format_money(Micros amount) {
  std::string digits = std::to_string(std::abs(amount) % kUnit);
  digits.insert(0, 6 - digits.size(), '0');
  while (digits.size() > 2 && digits.back() == '0') digits.pop_back();
  return (amount < 0 ? "-" : "") + std::to_string(std::abs(amount) / kUnit) + "." + digits;
}

}  // namespace sluice
