#include "proxy/http/target.h"

#include <algorithm>
#include <array>

#include "proxy/http/field.h"
#include "proxy/net/address.h"

namespace sluice {
namespace {

constexpr std::size_t kHostLimit = 253;  // RFC 1035 §2.3.4, without the final dot

constexpr auto kNameChar = [] {
  std::array<bool, 256> table{};
  for (int c = 0; c < 256; ++c) {
    table[static_cast<std::size_t>(c)] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                         (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  }
  return table;
}();

// Visible ASCII: what a URL is made of, percent-encoded where it must be, but for a fragment.
constexpr auto kUrlChar = [] {
  std::array<bool, 256> table{};
  for (std::size_t c = 0x21; c < 0x7f; ++c) table[c] = c != '#';
  return table;
}();

bool is_name_char(char c) { return kNameChar[static_cast<unsigned char>(c)]; }

// Resolvers take "2130706433", "127.1" and "0x7f.1" for addresses, each in its own way; no name of
// the DNS ends in such a label (RFC 3696 §2).
bool looks_like_number(std::string_view host) {
  auto label = host.substr(host.rfind('.') + 1);  // none: all of it
  if (label.empty() || label[0] < '0' || label[0] > '9') return false;
  const bool hex = label.starts_with("0x") || label.starts_with("0X");
  return label.find_first_not_of(hex ? "0123456789abcdefABCDEFxX" : "0123456789") ==
         std::string_view::npos;
}

// host[:port] without user information. A missing or empty port leaves `port` as it is.
Result<Target> parse_authority(std::string_view authority, std::uint16_t port, bool port_required) {
  Target target;
  target.authority = authority;
  target.port = port;
  std::string_view rest;
  if (authority.substr(0, 1) == "[") {
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return Error{"the address has no closing bracket"};
    target.host = authority.substr(1, close - 1);
    rest = authority.substr(close + 1);
    const auto ip = parse_ip(target.host);
    if (!ip || target.host.find(':') == std::string::npos) {
      return Error{"what stands in brackets is no IPv6 address"};
    }
    target.host = ip->ip_text();  // RFC 5952 §2: one address may be written in many ways
  } else {
    const auto colon = std::min(authority.find(':'), authority.size());
    target.host = authority.substr(0, colon);
    rest = authority.substr(colon);
    if (!std::all_of(target.host.begin(), target.host.end(), is_name_char)) {
      return Error{"the host has a character that no host name has"};
    }
    if (target.host.ends_with('.')) target.host.pop_back();
    if (looks_like_number(target.host) && !parse_ip(target.host)) {
      return Error{"the host is a number, but no IPv4 address of four parts"};
    }
    // "a.." would be a second name for "a", with a state of its own.
    if (target.host.starts_with('.') || target.host.ends_with('.') ||
        target.host.find("..") != std::string::npos) {
      return Error{"the host has an empty label"};
    }
  }
  if (target.host.empty()) return Error{"there is no host"};
  if (target.host.size() > kHostLimit) return Error{"the host name is too long"};
  std::transform(target.host.begin(), target.host.end(), target.host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  const bool has_port = rest.size() > 1 || (port_required && !rest.empty());
  if (!rest.empty() && rest.front() != ':')
    return Error{"after the host comes something else than a port"};
  if (has_port) {
    target.port = parse_port(rest.substr(1)).value_or(0);
    if (target.port == 0) return Error{"the port is not a number from 1 to 65535"};
  }
  if (port_required && !has_port) return Error{"the port is missing"};
  return target;
}

// Nothing but the characters of a host, an address or a port; empty is allowed.
bool is_authority(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_name_char(c) || std::string_view("~%!$&'()*+;=:[]").find(c) != std::string_view::npos;
  });
}

}  // namespace

bool has_valid_host(const Head& head) {
  int count = 0;
  for (const Field& field : head.fields) {
    if (field.id != FieldName::host) continue;
    ++count;
    if (!is_authority(field.value)) return false;
  }
  return count == 1 || (count == 0 && head.minor == 0);
}

bool is_origin_form(std::string_view target) { return target.starts_with('/') || target == "*"; }

Result<Target> parse_absolute_form(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (!equals_ignoring_case(target.substr(0, kScheme.size()), kScheme)) {
    if (equals_ignoring_case(target.substr(0, 8), "https://")) {
      return Error{
          "an https URL is not sent in plain text: let the client make a tunnel with CONNECT, or "
          "ask for the http:// URL where the host's policy says upgrade = true"};
    }
    return Error{"the target is no http URL"};
  }
  if (!std::all_of(target.begin(), target.end(),
                   [](char c) { return kUrlChar[static_cast<unsigned char>(c)]; })) {
    return Error{"the URL has a fragment or a character that must be percent-encoded"};
  }
  const auto rest = target.substr(kScheme.size());
  const auto behind =
      std::find_if(rest.begin(), rest.end(), [](char c) { return c == '/' || c == '?'; });
  const auto end = static_cast<std::size_t>(behind - rest.begin());
  auto parsed = parse_authority(rest.substr(0, end), 80, false);
  if (parsed) parsed->path = rest.substr(end);
  return parsed;
}

Result<Target> parse_authority_form(std::string_view target) {
  return parse_authority(target, 0, true);
}

Result<Target> parse_host(std::string_view authority, std::uint16_t port) {
  return parse_authority(authority, port, false);
}

}  // namespace sluice
