#include "proxy/net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace sluice {

namespace {

template <std::size_t N>
bool starts_with(const std::array<std::uint8_t, 16>& bytes, const std::uint8_t (&prefix)[N]) {
  return std::equal(prefix, prefix + N, bytes.begin());
}

// RFC 4291 §2.5.5.2: an IPv4-mapped address (::ffff:a.b.c.d) is an IPv4 node.
Address normalised(const std::uint8_t (&bytes)[16], std::uint16_t port) {
  Address address;
  std::copy(bytes, bytes + 16, address.bytes.begin());
  address.port = port;
  address.family = Address::Family::v6;
  if (starts_with(address.bytes, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}))
    return Address::v4(bytes[12], bytes[13], bytes[14], bytes[15], port);
  return address;
}

Address v4_at(const std::array<std::uint8_t, 16>& bytes, std::size_t at, std::uint8_t flip = 0) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[at + i] ^ flip); };
  return Address::v4(byte(0), byte(1), byte(2), byte(3));
}

}  // namespace

Address Address::v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d,
                    std::uint16_t port) {
  Address address;
  address.family = Family::v4;
  address.port = port;
  address.bytes = {a, b, c, d};
  return address;
}

Address Address::v6(const std::uint8_t (&bytes)[16], std::uint16_t port) {
  return normalised(bytes, port);
}

Address Address::with_port(std::uint16_t other) const {
  Address copy = *this;
  copy.port = other;
  return copy;
}

bool Address::same_ip(const Address& other) const {
  return family == other.family && bytes == other.bytes;
}

std::string Address::ip_text() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family != Family::none)
    inet_ntop(family == Family::v4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

std::string Address::text() const {
  const std::string ip = family == Family::v6 ? "[" + ip_text() + "]" : ip_text();
  return ip + ":" + std::to_string(port);
}

socklen_t Address::to_sockaddr(sockaddr_storage& storage) const {
  std::memset(&storage, 0, sizeof storage);
  if (family == Family::v4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, bytes.data(), 4);
    std::memcpy(&storage, &in, sizeof in);
    return sizeof in;
  }
  if (family == Family::v6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, bytes.data(), 16);
    std::memcpy(&storage, &in, sizeof in);
    return sizeof in;
  }
  return 0;
}

Address Address::from_sockaddr(const sockaddr* address, socklen_t length) {
  if (address == nullptr || length < sizeof(sa_family_t)) return {};
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in in;
    std::memcpy(&in, address, sizeof in);
    std::uint8_t b[4];
    std::memcpy(b, &in.sin_addr, sizeof b);
    return v4(b[0], b[1], b[2], b[3], ntohs(in.sin_port));
  }
  if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in;
    std::memcpy(&in, address, sizeof in);
    return normalised(in.sin6_addr.s6_addr, ntohs(in.sin6_port));
  }
  return {};
}

bool Address::is_loopback() const {
  if (family == Family::v4) return bytes[0] == 127;
  return family == Family::v6 &&
         starts_with(bytes, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
}

bool Address::is_unspecified() const {
  if (family == Family::v4) return bytes[0] == 0;
  return family == Family::v6 && bytes == std::array<std::uint8_t, 16>{};
}

bool Address::is_link_local() const {
  if (family == Family::v4) return bytes[0] == 169 && bytes[1] == 254;
  return family == Family::v6 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool Address::is_metadata() const {
  static const Address places[] = {
      v4(169, 254, 169, 254),                                                  // nearly everybody
      v4(100, 100, 100, 200),                                                  // Alibaba
      v4(192, 0, 0, 192),                                                      // Oracle
      v4(168, 63, 129, 16),                                                    // Azure WireServer
      v6({0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}),     // EC2
      v6({0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x23}),        // EKS pod identity
      v6({0xfd, 0x20, 0, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}),     // Google
      v6({0xfd, 0, 0, 0xc1, 0, 0, 0, 0, 0, 0, 0, 0, 0xa9, 0xfe, 0xa9, 0xfe}),  // Oracle
  };
  return std::any_of(std::begin(places), std::end(places),
                     [&](const Address& place) { return same_ip(place); });
}

bool Address::is_multicast() const {
  if (family == Family::v4)
    return (bytes[0] & 0xf0) == 0xe0 || same_ip(Address::v4(255, 255, 255, 255));
  return family == Family::v6 && bytes[0] == 0xff;
}

bool Address::is_private() const {
  if (family == Family::v4)
    return bytes[0] == 10 || (bytes[0] == 172 && (bytes[1] & 0xf0) == 16) ||
           (bytes[0] == 192 && bytes[1] == 168) || (bytes[0] == 100 && (bytes[1] & 0xc0) == 64);
  return family == Family::v6 &&
         ((bytes[0] & 0xfe) == 0xfc || (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0xc0));
}

Address Address::embedded_v4() const {
  if (family != Family::v6 || is_unspecified() || is_loopback()) return {};
  // RFC 6052 §2.1 and RFC 8215: NAT64, the address in the last 32 bits.
  if (starts_with(bytes, {0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0})) return v4_at(bytes, 12);
  if (starts_with(bytes, {0x00, 0x64, 0xff, 0x9b, 0, 1})) return v4_at(bytes, 12);
  if (starts_with(bytes, {0x20, 0x02})) return v4_at(bytes, 2);  // RFC 3056 §2: 6to4
  // RFC 4380 §4: Teredo, the client's address with its bits inverted.
  if (starts_with(bytes, {0x20, 0x01, 0, 0})) return v4_at(bytes, 12, 0xff);
  // RFC 2765 §2.1: IPv4-translated.
  if (starts_with(bytes, {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0})) return v4_at(bytes, 12);
  // RFC 4291 §2.5.5.1: IPv4-compatible, deprecated.
  if (starts_with(bytes, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})) return v4_at(bytes, 12);
  return {};
}

std::size_t AddressHash::operator()(const Address& address) const noexcept {
  const std::string_view bytes(reinterpret_cast<const char*>(address.bytes.data()),
                               address.bytes.size());
  const std::size_t rest =
      static_cast<std::size_t>(address.port) << 2 | static_cast<std::size_t>(address.family);
  return std::hash<std::string_view>{}(bytes) ^ (rest * 0x9e3779b97f4a7c15U);
}

std::optional<Address> parse_ip(std::string_view text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
    if (text.find(':') == text.npos) return std::nullopt;
  }
  char terminated[INET6_ADDRSTRLEN];
  if (text.empty() || text.size() >= sizeof terminated || text.find('\0') != text.npos)
    return std::nullopt;
  terminated[text.copy(terminated, text.size())] = '\0';
  std::uint8_t bytes[16];
  if (inet_pton(AF_INET, terminated, bytes) == 1)
    return Address::v4(bytes[0], bytes[1], bytes[2], bytes[3]);
  if (inet_pton(AF_INET6, terminated, bytes) == 1) return Address::v6(bytes);
  return std::nullopt;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (text.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return port;
}

std::optional<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  const std::string_view host = text.substr(0, colon);
  // Without brackets "::1:80" could be an address or an address and a port: refuse to guess.
  if (host.find(':') != host.npos && host.front() != '[') return std::nullopt;
  const auto ip = parse_ip(host);
  const auto port = parse_port(text.substr(colon + 1));
  if (!ip || !port) return std::nullopt;
  return ip->with_port(*port);
}

}  // namespace sluice
