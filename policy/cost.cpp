#include "policy/cost.h"

#include <algorithm>
#include <cmath>

#include "policy/path_pattern.h"

namespace sluice {
namespace {

constexpr Micros kUnit = 1'000'000;
constexpr std::size_t kMostDigits = 9;  // before the point: a billion is no price

}  // namespace

Micros to_micros(double money) {
  return static_cast<Micros>(std::llround(money * static_cast<double>(kUnit)));
}

Micros request_cost(const CostRules& rules, std::string_view path) {
  path = path.substr(0, path.find('?'));
  for (const PathCost& price : rules.paths) {
    if (path_matches(price.path, path)) return to_micros(price.cost);
  }
  return to_micros(rules.per_request);
}

std::optional<Micros> parse_cost(std::string_view value) {
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  const std::string_view whole = value.substr(0, value.find('.'));
  std::string_view part = value.substr(std::min(value.size(), whole.size() + 1));
  const auto digits = [](std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (whole.size() > kMostDigits || !digits(whole) || !digits(part)) return std::nullopt;
  if (whole.empty() && part.empty()) return std::nullopt;
  Micros amount = 0;
  for (const char c : whole) amount = amount * 10 + (c - '0');
  const bool rounds_up =
      part.substr(std::min<std::size_t>(part.size(), 6)).find_first_not_of('0') !=
      std::string_view::npos;
  part = part.substr(0, 6);
  for (std::size_t i = 0; i < 6; ++i) amount = amount * 10 + (i < part.size() ? part[i] - '0' : 0);
  return amount + (rounds_up ? 1 : 0);  // rather a millionth too much than forgotten
}

std::string format_money(Micros amount) {
  std::string digits = std::to_string(std::abs(amount) % kUnit);
  digits.insert(0, 6 - digits.size(), '0');
  while (digits.size() > 2 && digits.back() == '0') digits.pop_back();
  return (amount < 0 ? "-" : "") + std::to_string(std::abs(amount) / kUnit) + "." + digits;
}

}  // namespace sluice
