// Where a request wants to go, taken strictly from its target (RFC 9112 §3.2): the Host field never
// decides. Pure; the views lie in the target's own bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/result.h"
#include "proxy/http/head.h"

namespace sluice {

struct Target {
  std::string_view authority;  // as sent: what Host becomes
  std::string host;            // lower case, without brackets and without a final dot; an IPv6
                               // address as RFC 5952 writes it
  std::uint16_t port = 0;
  std::string_view path;  // path and query as sent; may be empty or start with '?'
};

// RFC 9112 §3.2: exactly one Host field, with nothing but a host in it; HTTP/1.0 may do without.
// What it says does not matter to us, but parsers that disagree about it may stand behind us.
bool has_valid_host(const Head& head);

bool is_origin_form(std::string_view target);  // "/…" or "*": meant for the proxy itself

Result<Target> parse_absolute_form(std::string_view target);   // "http://host[:port][/…]"
Result<Target> parse_authority_form(std::string_view target);  // CONNECT: "host:port"
// The Host field, or what stands in its place: without a port it is `port`.
Result<Target> parse_host(std::string_view authority, std::uint16_t port);

}  // namespace sluice
