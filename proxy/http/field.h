// The header fields a proxy must know by name, and how to recognise them. Everything else passes
// through by its bytes. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

enum class FieldName : std::uint8_t {
  other,
  accept,
  authorization,
  connection,
  content_encoding,
  content_length,
  content_type,
  date,
  expect,
  host,
  http2_settings,
  keep_alive,
  max_forwards,
  proxy_any,  // Proxy, and every Proxy-* field but the two below
  proxy_authorization,
  proxy_status,
  te,
  trailer,
  transfer_encoding,
  upgrade,
  via,
  www_authenticate,
};

FieldName field_name(std::string_view name);

// Meant for one connection only, whatever Connection says (RFC 9110 §7.6.1), or rebuilt by us.
bool is_hop_by_hop(FieldName name);

// May not be taken from a trailer section: framing, routing, credentials (RFC 9110 §6.5.1).
bool is_forbidden_in_trailers(std::string_view name);

bool is_token_char(unsigned char c);  // RFC 9110 §5.6.2
bool is_token(std::string_view text);
bool is_field_value(std::string_view text);  // RFC 9110 §5.5: no control byte but HTAB
bool equals_ignoring_case(std::string_view a, std::string_view b);
std::string_view trim(std::string_view text);  // optional white space: SP and HTAB

// Calls `visit` with each non-empty element of a comma-separated list.
template <class Visit>
void for_each_element(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    const auto element = trim(list.substr(0, comma));
    if (!element.empty()) visit(element);
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace sluice
