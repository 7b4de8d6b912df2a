// A host name in the one form that is compared, cached and asked for: lower case, no trailing dot.
// Reading one is strict and allocates nothing. An IP address is not a host name, nor is anything
// that some library would take for one ("127.1", "0x7f000001").
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sluice {

class HostName {
 public:
  // Letters, digits, hyphens and underscores; labels of 1..63 bytes; 253 in all (RFC 1035 §2.3.4).
  static std::optional<HostName> parse(std::string_view text);

  std::string_view view() const { return {text_.data(), size_}; }
  bool absolute() const { return absolute_; }                // it was written with a trailing dot
  bool is_or_is_below(std::string_view lower_parent) const;  // "localhost", "a.localhost"

 private:
  HostName() = default;
  std::array<char, 253> text_;
  std::size_t size_ = 0;
  bool absolute_ = false;
};

// Finds a name without making a string of it.
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept {
    return std::hash<std::string_view>{}(name);
  }
};
template <class T>
using NameMap = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;

}  // namespace sluice
