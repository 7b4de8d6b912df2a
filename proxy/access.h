// Who may use the proxy, and where it may connect. Decides by configuration alone: the name before
// it is resolved, then every address before it is dialed, so that no DNS answer gets around it.
// Immutable once made: any thread may ask.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/result.h"
#include "proxy/config.h"
#include "proxy/net/address.h"
#include "proxy/net/cidr.h"

namespace sluice {

struct Verdict {
  enum class Kind : std::uint8_t { allowed, denied, self };
  Kind kind = Kind::allowed;
  std::string why;  // one sentence without a full stop; empty when allowed

  explicit operator bool() const { return kind == Kind::allowed; }
};

std::vector<Address> interface_addresses();  // every address of this machine now; port 0

class AccessRules {
 public:
  using LocalAddresses = std::function<std::vector<Address>()>;

  // `own`: what the proxy and the admin page really listen on (after bind, so never port 0).
  static Result<AccessRules> make(const AccessConfig& config, std::vector<Address> own,
                                  LocalAddresses local = interface_addresses);

  bool client_allowed(const Address& client) const;
  Verdict host(std::string_view name) const;           // as the client wrote it
  Verdict destination(const Address& resolved) const;  // with its port

 private:
  AccessRules() = default;
  bool is_self(const Address& resolved) const;
  Verdict always_denied(const Address& ip) const;
  Verdict configured(const Address& ip) const;

  std::vector<Address> own_;
  LocalAddresses local_;
  bool any_client_ = false;  // users are asked instead, and `clients` was not written
  std::vector<Cidr> clients_;
  bool deny_private_ = false;
  std::vector<Cidr> deny_ranges_;
  std::vector<std::string> deny_names_;    // as HostName::view
  std::vector<std::string> deny_parents_;  // "internal" for "*.internal": what is below, not itself
};

// Why this configuration must not start: it would serve strangers. Empty: it is safe.
std::optional<std::string> open_proxy_problem(const Config& config);

}  // namespace sluice
