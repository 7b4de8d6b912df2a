#include "proxy/net/cidr.h"

#include <algorithm>

namespace sluice {

namespace {

unsigned width(const Address& address) { return address.family == Address::Family::v4 ? 32 : 128; }

// The address with everything past its first `prefix` bits set to zero.
Address masked(Address address, unsigned prefix) {
  for (unsigned i = 0; i < address.bytes.size(); ++i) {
    const unsigned kept = prefix > i * 8 ? std::min(8U, prefix - i * 8) : 0;
    address.bytes[i] &= static_cast<std::uint8_t>(0xff00U >> kept);
  }
  address.port = 0;
  return address;
}

}  // namespace

bool Cidr::contains(const Address& address) const {
  return base && address.family == base.family && masked(address, prefix) == base;
}

Result<Cidr> parse_cidr(std::string_view text) {
  const auto not_a_range = [&] {
    return Error{"\"" + std::string(text) + "\" is not an address or a range such as 10.0.0.0/8"};
  };
  const auto slash = text.find('/');
  const std::string_view ip_part = text.substr(0, slash);
  const auto ip = parse_ip(ip_part);
  if (!ip || ip_part.front() == '[') return not_a_range();
  if (slash == text.npos) return Cidr{*ip, width(*ip)};
  // "::ffff:10.0.0.0/104" counts its prefix in another family than the address it means.
  if (ip->family == Address::Family::v4 && ip_part.find(':') != ip_part.npos) return not_a_range();
  const auto prefix = parse_port(text.substr(slash + 1));
  if (!prefix || *prefix > width(*ip)) return not_a_range();
  const Cidr range{*ip, *prefix};
  if (masked(*ip, *prefix) != *ip)
    return Error{"\"" + std::string(text) + "\" has bits beyond its prefix; did you mean " +
                 masked(*ip, *prefix).ip_text() + "/" + std::to_string(*prefix) + "?"};
  return range;
}

}  // namespace sluice
