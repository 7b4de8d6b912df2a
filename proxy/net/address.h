// An IP address with a port, as a value, and what kind of place it is. Text is read strictly: no
// "127.1", no octal, no zones; an IPv4-mapped IPv6 address is the IPv4 address. Never resolves.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

struct Address {
  enum class Family : std::uint8_t { none, v4, v6 };

  Family family = Family::none;
  std::uint16_t port = 0;                // host byte order; 0: not known yet
  std::array<std::uint8_t, 16> bytes{};  // network byte order; IPv4 in the first four, the rest 0

  bool operator==(const Address&) const = default;
  explicit operator bool() const { return family != Family::none; }

  Address with_port(std::uint16_t other) const;
  bool same_ip(const Address& other) const;  // whatever the ports

  std::string ip_text() const;  // "127.0.0.1", "::1"
  std::string text() const;     // "127.0.0.1:80", "[::1]:80"

  // Fills `storage` and returns the length to pass along; 0 for an empty address.
  socklen_t to_sockaddr(sockaddr_storage& storage) const;
  static Address from_sockaddr(const sockaddr* address, socklen_t length);  // empty: neither IP
  static Address v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d,
                    std::uint16_t port = 0);
  static Address v6(const std::uint8_t (&bytes)[16], std::uint16_t port = 0);

  bool is_loopback() const;     // 127/8, ::1
  bool is_unspecified() const;  // 0/8 ("this network"), ::
  bool is_link_local() const;   // 169.254/16, fe80::/10
  bool is_metadata() const;     // where clouds hand out credentials
  bool is_multicast() const;    // 224/4, ff00::/8, and the IPv4 broadcast address
  bool is_private() const;      // RFC 1918, 100.64/10 (RFC 6598), fc00::/7, fec0::/10

  // The IPv4 address that a gateway will send this IPv6 address to (NAT64, 6to4, Teredo,
  // IPv4-compatible); empty when there is none. A rule for one must hold for the other.
  Address embedded_v4() const;
};

struct AddressHash {
  std::size_t operator()(const Address& address) const noexcept;
};

std::optional<Address> parse_ip(std::string_view text);       // "10.0.0.1", "::1", "[::1]"; port 0
std::optional<Address> parse_address(std::string_view text);  // "10.0.0.1:80", "[::1]:80"
std::optional<std::uint16_t> parse_port(std::string_view text);  // digits only, 0..65535

}  // namespace sluice
