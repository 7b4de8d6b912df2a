#include "policy/punycode.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice {
namespace {

constexpr std::size_t kLongestLabel = 63;  // RFC 1035 §2.3.4

struct Range {
  char32_t first, last;
};

// What IDNA (RFC 5892) disallows or a mapping (RFC 5895) would change, as far as a person is likely
// to type or paste it: controls, spaces, invisible marks, other dots, full-width forms, capitals.
constexpr std::array<Range, 14> kRefused = {{{0x80, 0xB6},
                                             {0xB8, 0xDE},
                                             {0x300, 0x36F},
                                             {0x386, 0x3AB},
                                             {0x400, 0x42F},
                                             {0x531, 0x556},
                                             {0x1680, 0x1680},
                                             {0x2000, 0x206F},
                                             {0x3000, 0x3004},
                                             {0xD800, 0xDFFF},
                                             {0xE000, 0xF8FF},
                                             {0xFE00, 0xFE0F},
                                             {0xFEFF, 0xFEFF},
                                             {0xFF00, 0xFFFF}}};

bool refused(char32_t c) {
  return std::any_of(kRefused.begin(), kRefused.end(),
                     [&](const Range& r) { return c >= r.first && c <= r.last; });
}

// RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF.
std::optional<char32_t> take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || text.size() < length) return std::nullopt;
  char32_t point = length == 1 ? lead : lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    point = (point << 6) | (byte(i) & 0x3Fu);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[length] || point > 0x10FFFF) return std::nullopt;
  text.remove_prefix(length);
  return point;
}

// RFC 3492 §5: the parameters of Punycode.
constexpr std::uint32_t kBase = 36, kLeastThreshold = 1, kMostThreshold = 26, kSkew = 38,
                        kDamp = 700, kFirstBias = 72, kFirstPoint = 128;

std::uint32_t adapt(std::uint32_t delta, std::uint32_t points, bool first) {  // §6.1
  delta = first ? delta / kDamp : delta / 2;
  delta += delta / points;
  std::uint32_t k = 0;
  for (; delta > ((kBase - kLeastThreshold) * kMostThreshold) / 2; k += kBase) {
    delta /= kBase - kLeastThreshold;
  }
  return k + (kBase - kLeastThreshold + 1) * delta / (delta + kSkew);
}

char digit(std::uint32_t value) {
  return static_cast<char>(value < 26 ? 'a' + value : '0' + (value - 26));
}

// §6.3. At most 63 points below 2^21 each: no sum here comes near 2^32.
std::string encode(const std::vector<char32_t>& points) {
  std::string out;
  for (char32_t c : points) {
    if (c < kFirstPoint) out.push_back(static_cast<char>(c));
  }
  const auto basic = static_cast<std::uint32_t>(out.size());
  if (basic > 0) out.push_back('-');
  std::uint32_t handled = basic, delta = 0, bias = kFirstBias;
  char32_t next = kFirstPoint;
  while (handled < points.size()) {
    char32_t least = 0x110000;
    for (char32_t c : points) {
      if (c >= next) least = std::min(least, c);
    }
    delta += static_cast<std::uint32_t>(least - next) * (handled + 1);
    next = least;
    for (char32_t c : points) {
      if (c < next) ++delta;
      if (c != next) continue;
      std::uint32_t q = delta;
      for (std::uint32_t k = kBase;; k += kBase) {
        const std::uint32_t t = k <= bias                    ? kLeastThreshold
                                : k >= bias + kMostThreshold ? kMostThreshold
                                                             : k - bias;
        if (q < t) break;
        out.push_back(digit(t + (q - t) % (kBase - t)));
        q = (q - t) / (kBase - t);
      }
      out.push_back(digit(q));
      bias = adapt(delta, handled + 1, handled == basic);
      delta = 0;
      ++handled;
    }
    ++delta;
    ++next;
  }
  return out;
}

bool plain(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

}  // namespace

Result<std::string> to_ascii_label(std::string_view label) {
  if (label.empty()) return Error{"a label between two dots is empty"};
  if (label.size() > 4 * kLongestLabel) return Error{"a label is longer than 63 characters"};
  std::vector<char32_t> points;
  bool ascii = true;
  for (std::string_view rest = label; !rest.empty();) {
    const auto point = take_code_point(rest);
    if (!point) return Error{"the name is not valid UTF-8"};
    char32_t c = *point;
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
    if (c < 0x80 && !plain(c)) {
      return Error{"a host name holds letters, digits, '-', '_' and dots only"};
    }
    if (refused(c)) {
      return Error{"the name has a character that cannot be converted; write its xn-- form"};
    }
    ascii = ascii && c < 0x80;
    points.push_back(c);
  }
  std::string out = ascii ? std::string(points.begin(), points.end()) : "xn--" + encode(points);
  if (out.size() > kLongestLabel) return Error{"a label is longer than 63 characters"};
  if (out.front() == '-' || out.back() == '-') {
    return Error{"a label starts or ends with '-'"};
  }
  return out;
}

}  // namespace sluice
