#include "proxy/access.h"

#include <ifaddrs.h>

#include <algorithm>

#include "proxy/net/host_name.h"

namespace sluice {

namespace {

bool is_wildcard(const Address& listening) {
  return listening.same_ip(Address::v4(0, 0, 0, 0)) ||
         (listening.family == Address::Family::v6 && listening.is_unspecified());
}

Verdict denied(std::string why) { return {Verdict::Kind::denied, std::move(why)}; }

}  // namespace

std::vector<Address> interface_addresses() {
  std::vector<Address> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    // The length by the largest kind: from_sockaddr goes by the family.
    const Address address = Address::from_sockaddr(one->ifa_addr, sizeof(sockaddr_storage));
    if (address) found.push_back(address.with_port(0));
  }
  freeifaddrs(list);
  return found;
}

Result<AccessRules> AccessRules::make(const AccessConfig& config, std::vector<Address> own,
                                      LocalAddresses local) {
  AccessRules rules;
  rules.own_ = std::move(own);
  rules.local_ = std::move(local);
  rules.any_client_ = !config.clients_given && !config.users.empty();
  for (const std::string& text : config.clients) {
    const auto range = parse_cidr(text);
    if (!range) return Error{"access.clients: " + range.error()};
    rules.clients_.push_back(*range);
  }
  for (const std::string& text : config.deny) {
    if (text == "private") {
      rules.deny_private_ = true;
      continue;
    }
    if (const auto range = parse_cidr(text)) {
      rules.deny_ranges_.push_back(*range);
      continue;
    }
    const bool below = text.starts_with("*.");
    const auto name = HostName::parse(std::string_view(text).substr(below ? 2 : 0));
    if (!name) {
      // What has a slash was meant as a range: its own message helps more.
      if (text.find('/') != text.npos) return Error{"access.deny: " + parse_cidr(text).error()};
      return Error{"access.deny: \"" + text +
                   "\" is not a range, a host name, a pattern such as *.internal, or \"private\""};
    }
    (below ? rules.deny_parents_ : rules.deny_names_).emplace_back(name->view());
  }
  return rules;
}

bool AccessRules::client_allowed(const Address& client) const {
  return any_client_ || std::any_of(clients_.begin(), clients_.end(),
                                    [&](const Cidr& range) { return range.contains(client); });
}

Verdict AccessRules::host(std::string_view text) const {
  if (deny_names_.empty() && deny_parents_.empty()) return {};
  const auto name = HostName::parse(text);
  if (!name) return {};  // an address, judged as a destination; or nothing that can be resolved
  for (const std::string& exact : deny_names_)
    if (name->view() == exact) return denied(exact + " is denied by access.deny");
  for (const std::string& parent : deny_parents_)
    if (name->view() != parent && name->is_or_is_below(parent))
      return denied(std::string(name->view()) + " is denied by access.deny (*." + parent + ")");
  return {};
}

bool AccessRules::is_self(const Address& resolved) const {
  for (const Address& own : own_) {
    if (own.port != resolved.port) continue;
    if (own.same_ip(resolved)) return true;
    if (!is_wildcard(own)) continue;
    // A wildcard listens on every address there is now, so ask now: interfaces come and go. All of
    // 127/8 is ours though no interface names more than one of it.
    if (resolved.is_loopback()) return true;
    const std::vector<Address> local = local_();
    if (std::any_of(local.begin(), local.end(),
                    [&](const Address& one) { return one.same_ip(resolved); }))
      return true;
  }
  return false;
}

Verdict AccessRules::always_denied(const Address& ip) const {
  const auto never = [&](const char* kind) {
    return denied(ip.ip_text() + " is " + kind + " address, which is never proxied");
  };
  if (ip.is_metadata()) return never("a cloud metadata");
  if (ip.is_link_local()) return never("a link-local");
  if (ip.is_multicast()) return never("a multicast or broadcast");
  if (ip.is_unspecified()) return never("an unspecified");
  return {};
}

Verdict AccessRules::configured(const Address& ip) const {
  if (deny_private_ && ip.is_private())
    return denied(ip.ip_text() + " is a private address, denied by access.deny");
  for (const Cidr& range : deny_ranges_)
    if (range.contains(ip))
      return denied(ip.ip_text() + " is denied by access.deny (" + range.base.ip_text() + "/" +
                    std::to_string(range.prefix) + ")");
  return {};
}

Verdict AccessRules::destination(const Address& resolved) const {
  if (!resolved) return denied("there is no address to connect to");
  if (is_self(resolved)) return {Verdict::Kind::self, resolved.text() + " is this proxy itself"};
  if (Verdict no = always_denied(resolved); !no) return no;
  if (Verdict no = configured(resolved); !no) return no;
  const Address inner = resolved.embedded_v4();
  if (!inner) return {};
  // A gateway would carry it to the IPv4 address inside: the same rules hold for that one, and
  // its loopback is the gateway's, where nobody was invited.
  Verdict inside = always_denied(inner);
  if (inside) inside = configured(inner);
  if (inside && inner.is_loopback()) inside = denied(inner.ip_text() + " is a loopback address");
  if (inside && is_self(inner.with_port(resolved.port)))
    return {Verdict::Kind::self, resolved.text() + " leads to this proxy itself"};
  if (!inside) inside.why = resolved.ip_text() + " leads to an IPv4 address: " + inside.why;
  return inside;
}

std::optional<std::string> open_proxy_problem(const Config& config) {
  if (config.access.clients_given || !config.access.users.empty()) return std::nullopt;
  for (const std::string& text : config.proxy.listen) {
    const auto address = parse_address(text);
    if (!address) return "proxy.listen: \"" + text + "\" is not an address with a port";
    if (!address->is_loopback())
      return "proxy.listen: " + text +
             " can be reached from other machines: say who may use the proxy with access.clients "
             "or access.users";
  }
  return std::nullopt;
}

}  // namespace sluice
