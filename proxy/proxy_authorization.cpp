#include "proxy/proxy_authorization.h"

#include <cstdint>

namespace sluice {

namespace {

constexpr std::size_t max_name = 256;
constexpr std::size_t max_password = 1024;
constexpr std::size_t max_encoded = (max_name + 1 + max_password + 2) / 3 * 4;

int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

// RFC 4648 §4, padded, and §3.5: unused bits are zero, so every text has one spelling only.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0 || text.size() > max_encoded) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  text.remove_suffix(padding);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned held = 0;  // how many of `bits`, counted from the lowest, are not written yet
  for (const char c : text) {
    const int six = sextet(c);
    if (six < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(six)) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<char>(bits >> held & 0xff));
  }
  if (held >= 6 || (bits & ((1U << held) - 1)) != 0) return std::nullopt;
  return bytes;
}

// RFC 3629 §3: shortest forms only, no surrogates, nothing past U+10FFFF.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<std::uint8_t>(text[i]);
    const std::size_t length = lead < 0x80             ? 1
                               : (lead & 0xe0) == 0xc0 ? 2
                               : (lead & 0xf0) == 0xe0 ? 3
                               : (lead & 0xf8) == 0xf0 ? 4
                                                       : 0;
    if (length == 0 || text.size() - i < length) return false;
    std::uint32_t point = length == 1 ? lead : lead & (0x7fU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<std::uint8_t>(text[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < smallest[length] || point > 0x10ffff) return false;
    if (point >= 0xd800 && point <= 0xdfff) return false;
    i += length;
  }
  return true;
}

bool has_control(std::string_view text) {
  for (const char c : text)
    if (static_cast<std::uint8_t>(c) < 0x20 || c == 0x7f) return true;
  return false;
}

bool is_basic(std::string_view scheme) {
  constexpr std::string_view basic = "basic";
  if (scheme.size() != basic.size()) return false;
  for (std::size_t i = 0; i < basic.size(); ++i)
    if ((scheme[i] | 0x20) != basic[i]) return false;
  return true;
}

}  // namespace

std::optional<Credentials> parse_basic(std::string_view value) {
  // RFC 9110 §11.4: scheme, one or more spaces, token68.
  const auto space = value.find(' ');
  if (space == value.npos || !is_basic(value.substr(0, space))) return std::nullopt;
  const auto start = value.find_first_not_of(' ', space);
  if (start == value.npos) return std::nullopt;
  const auto pair = decode_base64(value.substr(start));
  if (!pair) return std::nullopt;
  const auto colon = pair->find(':');  // RFC 7617 §2: the first one; a password may have more
  if (colon == pair->npos || colon == 0 || colon > max_name) return std::nullopt;
  if (pair->size() - colon - 1 > max_password) return std::nullopt;
  if (has_control(*pair) || !is_utf8(*pair)) return std::nullopt;
  return Credentials{pair->substr(0, colon), pair->substr(colon + 1)};
}

}  // namespace sluice
