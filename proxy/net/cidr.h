// A range of addresses: "10.0.0.0/8", "fd00::/8", or one address. Bits beyond the prefix must be
// zero, because "10.0.0.1/8" is more often a mistake than a wish.
#pragma once

#include <string_view>

#include "policy/result.h"
#include "proxy/net/address.h"

namespace sluice {

struct Cidr {
  Address base;  // port 0
  unsigned prefix = 0;

  bool contains(const Address& address) const;  // ports do not matter; families must agree
  bool operator==(const Cidr&) const = default;
};

Result<Cidr> parse_cidr(std::string_view text);

}  // namespace sluice
