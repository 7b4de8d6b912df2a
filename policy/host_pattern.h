// Host names as policies write them and requests name them, in one spelling: lower case, no
// trailing dot, IDN as xn--, IPv6 shortened (RFC 5952) and without brackets. Text only: nothing is
// resolved.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "policy/result.h"

namespace sluice {

struct HostPattern {
  enum class Kind : std::uint8_t { exact, suffix, any };
  Kind kind = Kind::any;
  std::string name;        // of "*.example.org": "example.org"; of "*": empty
  std::uint16_t port = 0;  // 0: any
  // NOLINTNEXTLINE(modernize-use-nullptr): the zero is the compiler's own
  auto operator<=>(const HostPattern&) const = default;
};

// "api.example.com", "*.example.org", "*", "127.0.0.1", "::1", "[::1]"; each but a bare IPv6
// address with or without ":port".
Result<HostPattern> parse_host_pattern(std::string_view text);

// The pattern back in its one spelling, IPv6 addresses in brackets.
std::string to_string(const HostPattern& pattern);

using HostBuffer = std::array<char, 256>;

// A request's host, with or without brackets, in the spelling of HostPattern::name; empty when it
// is too long or a broken address. Allocates nothing; the result points into `buffer`.
std::string_view normalise_host(std::string_view host, HostBuffer& buffer);

}  // namespace sluice
