// The names that Connection declares to be for this connection only (RFC 9110 §7.6.1), in a header
// or a trailer section. Most messages have none, and pay nothing. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/head.h"

namespace sluice {

// Good as long as the head's bytes are.
class Nominated {
 public:
  explicit Nominated(const Head& head);
  bool has(std::string_view name) const { return !names_.empty() && find(name); }
  // For the trailer section, which comes when the head has gone.
  std::vector<std::string> copy() const { return {names_.begin(), names_.end()}; }

 private:
  bool find(std::string_view name) const;

  std::vector<std::string_view> names_;  // sorted
};

// The same search among the names of copy().
bool is_among(const std::vector<std::string>& names, std::string_view name);

}  // namespace sluice
