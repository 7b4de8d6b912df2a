// Paths as policies and roles write them: "*" stands for any run of characters, everything else for
// itself, case included. A query string is never looked at. Pure, bounded, allocates nothing.
#pragma once

#include <string_view>

namespace sluice {

inline constexpr std::size_t kLongestPathPattern = 256;

bool path_matches(std::string_view pattern, std::string_view path);

// Whether the pattern matches every path, and so is the least specific there can be.
bool matches_all_paths(std::string_view pattern);

// Whether `a` says more about a path than `b`: exact before wildcard, then more characters that
// stand for themselves, then fewer "*". Patterns that say equally much are ordered by their text.
bool more_specific_path(std::string_view a, std::string_view b);

}  // namespace sluice
