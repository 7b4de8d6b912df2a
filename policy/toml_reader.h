// TOML text to a plain tree, or the one place where it stops being TOML. Hides the TOML library
// from everybody else; bounded in size and depth, so any bytes are safe to read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policy/diagnostic.h"

namespace sluice {

inline constexpr std::size_t kLargestToml = 1024 * 1024;  // bytes
inline constexpr std::size_t kDeepestToml = 16;           // tables and arrays inside each other

struct TomlEntry;

struct TomlNode {
  enum class Kind : std::uint8_t { boolean, integer, real, string, date, array, table };
  Kind kind = Kind::table;
  unsigned line = 1, column = 1;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string string;
  std::vector<TomlNode> items;
  std::vector<TomlEntry> entries;

  const TomlEntry* find(std::string_view key) const;
};

struct TomlEntry {
  std::string key;
  unsigned line = 1, column = 1;  // of the key
  TomlNode value;
};

// A table at the root, or what is wrong.
std::variant<TomlNode, Diagnostic> read_toml(std::string_view text, const std::string& file);

}  // namespace sluice
