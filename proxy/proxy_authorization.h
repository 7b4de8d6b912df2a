// Reads Proxy-Authorization: the name and the password a client shows us. Strict, bounded, pure;
// whether they are right is for users.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

struct Credentials {
  std::string name;      // 1..256 bytes of UTF-8, no control characters, no colon
  std::string password;  // 0..1024 bytes of UTF-8, no control characters
};

// The header's value in the Basic scheme (RFC 7617 §2); empty when it is anything else.
std::optional<Credentials> parse_basic(std::string_view header_value);

}  // namespace sluice
