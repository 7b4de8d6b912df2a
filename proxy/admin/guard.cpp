#include "proxy/admin/guard.h"

#include <openssl/crypto.h>

#include "proxy/dashboard/assets.h"

namespace sluice {
namespace {

// Without its port: behind a forwarded port (ssh -L) it is another one, and an Origin is compared
// with the whole of Host.
std::string_view host_part(std::string_view host) {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.rfind(':');
  if (colon == std::string_view::npos) return host;
  if (bracket != std::string_view::npos && colon < bracket) return host;
  return parse_port(host.substr(colon + 1)) ? host.substr(0, colon) : std::string_view();
}

bool host_is_ours(const AdminRequest& request, const Address& local) {
  if (request.host_fields != 1) return false;
  const std::string_view name = host_part(request.host);
  if (equals_ignoring_case(name, "localhost")) return local.is_loopback();
  const auto ip = parse_ip(name);
  return ip && ip->same_ip(local);
}

bool bearer_matches(std::string_view authorization, std::string_view token) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() != kScheme.size() + token.size()) return false;
  if (!equals_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) return false;
  return CRYPTO_memcmp(authorization.data() + kScheme.size(), token.data(), token.size()) == 0;
}

// Fetch metadata: what a browser says about who started a request. "none" is the address bar.
bool started_elsewhere(const AdminRequest& request) {
  const std::string& site = request.fetch_site;
  if (site.empty() || site == "same-origin" || site == "none") return false;
  return request.method != "GET" || needs_token(request.path);
}

}  // namespace

bool needs_token(std::string_view path) {
  return path != "/healthz" && path != "/readyz" && path != "/metrics" && path != "/" &&
         find_asset(path) == nullptr;
}

std::optional<AdminReply> objection(const AdminRequest& request, const AdminPeer& peer,
                                    std::string_view token) {
  if (peer.unix_socket) {
    // No browser talks to a unix socket, so whatever says it is one has been led here.
    if (!request.origin.empty())
      return admin_error(403, "the unix socket is not for pages of a browser");
    return std::nullopt;
  }
  if (!host_is_ours(request, peer.local))
    return admin_error(403,
                       "the Host field must be the address that was connected to, or localhost");
  if (!request.origin.empty() && !equals_ignoring_case(request.origin, "http://" + request.host))
    return admin_error(403, "another site's page may not talk to the admin side");
  if (started_elsewhere(request))
    return admin_error(403, "another site's page may not talk to the admin side");
  if (needs_token(request.path) && !bearer_matches(request.authorization, token))
    return admin_error(401,
                       "this needs the token in admin.token of the state directory, as "
                       "Authorization: Bearer TOKEN");
  return std::nullopt;
}

}  // namespace sluice
