#include "policy/host_pattern.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "policy/punycode.h"

namespace sluice {
namespace {

constexpr std::size_t kLongestName = 253;  // RFC 1035 §2.3.4, without the trailing dot

using Groups = std::array<std::uint16_t, 8>;

std::optional<std::uint16_t> number(std::string_view text, int base, std::size_t most_digits,
                                    unsigned most) {
  unsigned value = 0;
  if (text.empty() || text.size() > most_digits) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || value > most) return std::nullopt;
  return static_cast<std::uint16_t>(value);
}

// The last two groups as "192.0.2.1" (RFC 4291 §2.2, form 3).
bool take_ipv4(std::string_view text, Groups& groups, std::size_t at) {
  std::array<std::uint16_t, 4> bytes{};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t end = i < 3 ? text.find('.') : text.size();
    if (end == std::string_view::npos) return false;
    const auto byte = number(text.substr(0, end), 10, 3, 255);
    if (!byte) return false;
    bytes[i] = *byte;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  groups[at] = static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]);
  groups[at + 1] = static_cast<std::uint16_t>(bytes[2] << 8 | bytes[3]);
  return true;
}

// RFC 4291 §2.2; without a zone.
std::optional<Groups> parse_ipv6(std::string_view text) {
  Groups groups{};
  std::size_t count = 0;
  std::optional<std::size_t> gap;
  if (text.substr(0, 2) == "::") {
    gap = 0;
    text.remove_prefix(2);
  }
  while (!text.empty()) {
    if (count == 8) return std::nullopt;
    const std::size_t end = std::min(text.find(':'), text.size());
    const std::string_view part = text.substr(0, end);
    if (end == text.size() && part.find('.') != std::string_view::npos) {
      if (count > 6 || !take_ipv4(part, groups, count)) return std::nullopt;
      count += 2;
      break;
    }
    const auto group = number(part, 16, 4, 0xFFFF);
    if (!group) return std::nullopt;
    groups[count++] = *group;
    text.remove_prefix(end);
    if (text.empty()) break;
    text.remove_prefix(1);
    if (text.empty()) return std::nullopt;  // a single colon at the end
    if (text.front() == ':') {
      if (gap) return std::nullopt;
      gap = count;
      text.remove_prefix(1);
    }
  }
  if (!gap) return count == 8 ? std::optional(groups) : std::nullopt;
  if (count == 8) return std::nullopt;
  const auto from = groups.begin() + static_cast<std::ptrdiff_t>(*gap);
  std::rotate(from, groups.begin() + static_cast<std::ptrdiff_t>(count), groups.end());
  return groups;
}

// RFC 4291 §2.5.5.2: "::ffff:192.0.2.1" is the IPv4 address.
bool is_mapped_ipv4(const Groups& groups) {
  return std::all_of(groups.begin(), groups.begin() + 5, [](auto group) { return group == 0; }) &&
         groups[5] == 0xFFFF;
}

std::string_view write_ipv4(std::uint16_t high, std::uint16_t low, HostBuffer& buffer) {
  char* out = buffer.data();
  for (int byte : {high >> 8, high & 255, low >> 8, low & 255}) {
    if (out != buffer.data()) *out++ = '.';
    out = std::to_chars(out, buffer.data() + buffer.size(), byte).ptr;
  }
  return {buffer.data(), static_cast<std::size_t>(out - buffer.data())};
}

// RFC 5952 §4: lower case, no leading zeros, the first longest run of zero groups as "::".
std::string_view write_ipv6(const Groups& groups, HostBuffer& buffer) {
  std::size_t gap = 8, gap_length = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t run = 0;
    while (i + run < 8 && groups[i + run] == 0) ++run;
    if (run > gap_length) {
      gap = i;
      gap_length = run;
    }
  }
  char* out = buffer.data();
  for (std::size_t i = 0; i < 8;) {
    if (i == gap) {
      *out++ = ':';
      *out++ = ':';
      i += gap_length;
      continue;
    }
    if (i > 0 && i != gap + gap_length) *out++ = ':';
    out = std::to_chars(out, buffer.data() + buffer.size(), groups[i], 16).ptr;
    ++i;
  }
  return {buffer.data(), static_cast<std::size_t>(out - buffer.data())};
}

bool is_ipv6(std::string_view text) { return text.find(':') != std::string_view::npos; }

// What some library takes for an IPv4 address can only be one: no host is named "127.1".
bool ends_in_number(std::string_view name) {
  if (!name.empty() && name.back() == '.') name.remove_suffix(1);
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return !last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_ipv4(std::string_view name) {
  Groups groups{};
  HostBuffer buffer;
  return take_ipv4(name, groups, 6) && write_ipv4(groups[6], groups[7], buffer) == name;
}

Result<std::string> pattern_name(std::string_view text) {
  if (is_ipv6(text)) {
    HostBuffer buffer;
    const std::string_view name = normalise_host(text, buffer);
    if (name.empty()) return Error{"not an IPv6 address"};
    return std::string(name);
  }
  if (!text.empty() && text.back() == '.') text.remove_suffix(1);
  if (text.empty()) return Error{"the host name is empty"};
  std::string out;
  while (true) {
    const std::size_t end = std::min(text.find('.'), text.size());
    const Result<std::string> label = to_ascii_label(text.substr(0, end));
    if (!label) return Error{label.error()};
    out += *label;
    if (out.size() > kLongestName) return Error{"the host name is longer than 253 characters"};
    if (end == text.size()) return out;
    out += '.';
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<HostPattern> parse_host_pattern(std::string_view text) {
  if (text.size() > 4 * kLongestName) return Error{"the host name is longer than 253 characters"};
  if (text.find("://") != std::string_view::npos || text.find('/') != std::string_view::npos) {
    return Error{"a host is meant, without scheme and path"};
  }
  HostPattern pattern;
  std::string_view name = text;
  std::optional<std::string_view> port;
  if (!text.empty() && text.front() == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return Error{"the ']' is missing"};
    name = text.substr(1, end - 1);
    if (!is_ipv6(name)) return Error{"not an IPv6 address"};
    if (end + 1 < text.size()) {
      if (text[end + 1] != ':') return Error{"only a port may follow the ']'"};
      port = text.substr(end + 2);
    }
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    name = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
  }
  if (port) {
    const auto value = number(*port, 10, 5, 65535);
    if (!value || *value == 0) return Error{"a port is a number from 1 to 65535"};
    pattern.port = *value;
  }
  if (name == "*") return pattern;
  pattern.kind = HostPattern::Kind::exact;
  if (name.substr(0, 2) == "*.") {
    pattern.kind = HostPattern::Kind::suffix;
    name.remove_prefix(2);
  }
  if (name.find('*') != std::string_view::npos) {
    return Error{"'*' stands alone or for whole labels at the start, as in \"*.example.org\""};
  }
  if (pattern.kind == HostPattern::Kind::suffix && is_ipv6(name)) {
    return Error{"an address has no '*'"};
  }
  if (!is_ipv6(name) && ends_in_number(name)) {
    if (pattern.kind == HostPattern::Kind::suffix) return Error{"an address has no '*'"};
    if (!is_ipv4(name)) return Error{"not an IPv4 address"};
  }
  Result<std::string> spelled = pattern_name(name);
  if (!spelled) return Error{spelled.error()};
  pattern.name = std::move(*spelled);
  return pattern;
}

std::string to_string(const HostPattern& pattern) {
  std::string out = pattern.kind == HostPattern::Kind::any      ? "*"
                    : pattern.kind == HostPattern::Kind::suffix ? "*." + pattern.name
                    : is_ipv6(pattern.name)                     ? "[" + pattern.name + "]"
                                                                : pattern.name;
  if (pattern.port != 0) out += ":" + std::to_string(pattern.port);
  return out;
}

std::string_view normalise_host(std::string_view host, HostBuffer& buffer) {
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (is_ipv6(host)) {
    const auto groups = parse_ipv6(host);
    if (!groups) return {};
    return is_mapped_ipv4(*groups) ? write_ipv4((*groups)[6], (*groups)[7], buffer)
                                   : write_ipv6(*groups, buffer);
  }
  if (!host.empty() && host.back() == '.') host.remove_suffix(1);
  if (host.size() > kLongestName) return {};
  std::transform(host.begin(), host.end(), buffer.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return {buffer.data(), host.size()};
}

}  // namespace sluice
