#include "policy/path_pattern.h"

#include <algorithm>
#include <tuple>

namespace sluice {

bool matches_all_paths(std::string_view pattern) { return pattern == "/*" || pattern == "*"; }

// On a mismatch only the last "*" needs to take one character more: at most |pattern| * |path|
// steps.
bool path_matches(std::string_view pattern, std::string_view path) {
  path = path.substr(0, path.find('?'));
  if (matches_all_paths(pattern)) return true;
  std::size_t p = 0, s = 0, after_star = std::string_view::npos, resume = 0;
  while (s < path.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      resume = s;
    } else if (p < pattern.size() && pattern[p] == path[s]) {
      ++p;
      ++s;
    } else if (after_star != std::string_view::npos) {
      p = after_star;
      s = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool more_specific_path(std::string_view a, std::string_view b) {
  const auto rank = [](std::string_view pattern) {
    const auto stars = std::count(pattern.begin(), pattern.end(), '*');
    const auto literals = static_cast<std::ptrdiff_t>(pattern.size()) - stars;
    return std::tuple(stars > 0, matches_all_paths(pattern), -literals, stars, pattern);
  };
  return rank(a) < rank(b);
}

}  // namespace sluice
