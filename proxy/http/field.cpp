#include "proxy/http/field.h"

#include <algorithm>
#include <array>

namespace sluice {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

struct Known {
  std::string_view name;
  FieldName id;
};

constexpr auto kKnown = std::to_array<Known>({
    {"accept", FieldName::accept},
    {"authorization", FieldName::authorization},
    {"connection", FieldName::connection},
    {"content-encoding", FieldName::content_encoding},
    {"content-length", FieldName::content_length},
    {"content-type", FieldName::content_type},
    {"date", FieldName::date},
    {"expect", FieldName::expect},
    {"host", FieldName::host},
    {"http2-settings", FieldName::http2_settings},
    {"keep-alive", FieldName::keep_alive},
    {"max-forwards", FieldName::max_forwards},
    {"proxy", FieldName::proxy_any},  // nobody's, but CGI makes HTTP_PROXY of it
    {"proxy-authorization", FieldName::proxy_authorization},
    {"proxy-status", FieldName::proxy_status},
    {"te", FieldName::te},
    {"trailer", FieldName::trailer},
    {"transfer-encoding", FieldName::transfer_encoding},
    {"upgrade", FieldName::upgrade},
    {"via", FieldName::via},
    {"www-authenticate", FieldName::www_authenticate},
});

constexpr std::array<bool, 256> token_table() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~"))
    table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr auto kToken = token_table();

// Most fields of most messages are none of ours: their length and first letter tell at once. The
// known ones of each length are linked, so at most two are compared.
struct Index {
  std::array<std::uint32_t, 20> letters{};  // by length: the first letters, a bit each
  std::array<std::int16_t, 20> first{};     // by length: in kKnown, or -1
  std::array<std::int16_t, kKnown.size()> next{};
};
constexpr auto kIndex = [] {
  Index index;
  index.first.fill(-1);
  for (std::size_t i = 0; i < kKnown.size(); ++i) {
    const std::string_view name = kKnown[i].name;
    index.letters[name.size()] |= 1u << (name[0] - 'a');
    index.next[i] = index.first[name.size()];
    index.first[name.size()] = static_cast<std::int16_t>(i);
  }
  return index;
}();

}  // namespace

bool is_token_char(unsigned char c) { return kToken[c]; }

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool is_field_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

FieldName field_name(std::string_view name) {
  if (name.empty()) return FieldName::other;
  const auto letter = static_cast<unsigned>(lower(name[0]) - 'a');
  if (letter >= 26) return FieldName::other;
  if (name.size() < kIndex.first.size() && (kIndex.letters[name.size()] >> letter & 1) != 0) {
    for (int i = kIndex.first[name.size()]; i >= 0; i = kIndex.next[static_cast<std::size_t>(i)]) {
      const Known& known = kKnown[static_cast<std::size_t>(i)];
      if (equals_ignoring_case(known.name, name)) return known.id;
    }
  }
  if (letter == 'p' - 'a' && name.size() >= 6 &&
      equals_ignoring_case(name.substr(0, 6), "proxy-")) {
    return FieldName::proxy_any;
  }
  return FieldName::other;
}

bool is_hop_by_hop(FieldName name) {
  switch (name) {
    case FieldName::connection:
    case FieldName::http2_settings:
    case FieldName::keep_alive:
    case FieldName::proxy_any:
    case FieldName::proxy_authorization:
    case FieldName::te:
    case FieldName::transfer_encoding:
    case FieldName::upgrade: return true;
    default: return false;
  }
}

bool is_forbidden_in_trailers(std::string_view name) {
  constexpr std::string_view kForbidden[] = {
      "cache-control", "content-range", "cookie", "range", "set-cookie",
  };
  switch (field_name(name)) {
    case FieldName::other: break;
    case FieldName::date: return false;
    default: return true;
  }
  return std::any_of(std::begin(kForbidden), std::end(kForbidden),
                     [&](std::string_view bad) { return equals_ignoring_case(bad, name); });
}

}  // namespace sluice
