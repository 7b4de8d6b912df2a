#include "proxy/inside.h"

#include <algorithm>

namespace sluice {
namespace {

Refusal bad_request(std::string detail) {
  return {400, "bad-request", "http_request_error", std::move(detail)};
}

// RFC 9110 §15.5.20: an answer from here would not be the named host's.
Refusal misdirected(const Inside& inside, std::string_view named) {
  return {
      421, "misdirected", "http_request_denied",
      "the tunnel leads to " + inside.authority + ", but the request is for " + std::string(named),
      inside.host};
}

// "https://host[:port]/path" -> "host[:port]", leaving the path; empty: it is no such URL.
std::string_view cut_authority(std::string_view& target, bool secure) {
  const std::string_view scheme = secure ? "https://" : "http://";
  if (!equals_ignoring_case(target.substr(0, scheme.size()), scheme)) return {};
  target.remove_prefix(scheme.size());
  const auto end = std::min(target.find_first_of("/?"), target.size());
  const std::string_view authority = target.substr(0, end);
  target.remove_prefix(end);
  return authority;
}

}  // namespace

InsideTarget inside_target(const Inside& inside, const Head& request) {
  if (request.method == "CONNECT") {
    return {{}, bad_request("there can be no tunnel inside a tunnel")};
  }
  const Field* field = request.find(FieldName::host);
  std::string_view authority = field != nullptr ? field->value : std::string_view(inside.authority);
  std::string_view path = request.target;
  if (path == "*") {
    path = {};
  } else if (!path.starts_with('/')) {
    authority = cut_authority(path, inside.secure);  // RFC 9112 §3.2.2: it overrules Host
    if (authority.empty()) return {{}, bad_request("the target is neither a path nor a URL")};
  }
  if (path.find('#') != std::string_view::npos) {
    return {{}, bad_request("the target has a fragment")};
  }
  // Some clients leave out a port that is not the scheme's own; the tunnel's is meant.
  auto named = parse_host(authority, inside.port);
  if (!named) return {{}, bad_request("bad Host: " + named.error())};
  if (named->host != inside.host || named->port != inside.port) {
    return {{}, misdirected(inside, authority)};
  }
  named->path = path;
  return {std::move(*named), std::nullopt};
}

}  // namespace sluice
