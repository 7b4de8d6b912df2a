#include "policy/state_key.h"

#include <algorithm>

#include "policy/host_pattern.h"

namespace sluice {
namespace {

constexpr std::string_view kPolicyPrefix = "policy/";

}  // namespace

void append_state_key(std::string& out, const Policy& policy, std::string_view host,
                      std::uint16_t port, bool secure, std::string_view credential) {
  if (policy.scope == Scope::policy) {
    out.append(kPolicyPrefix).append(policy.name);
    return;
  }
  const bool literal = host.find(':') != std::string_view::npos;
  if (literal) out += '[';
  out += host;
  if (literal) out += ']';
  if (port != (secure ? 443 : 80)) out.append(":").append(std::to_string(port));
  if (policy.scope == Scope::credential && !credential.empty()) out.append("#").append(credential);
}

Result<std::string> read_key(std::string_view argument) {
  const auto printable = [](char c) { return c > 0x20 && c != 0x7f; };
  const Error no_key{"\"" + std::string(argument.substr(0, 300)) +
                     "\" is no key: write a host, host:port or policy/NAME, as `sluice status` "
                     "shows them"};
  if (argument.starts_with(kPolicyPrefix)) {
    const auto name = argument.substr(kPolicyPrefix.size());
    if (name.empty() || !std::all_of(name.begin(), name.end(), printable)) return no_key;
    return std::string(argument);
  }
  const auto hash = std::min(argument.find('#'), argument.size());
  const auto pattern = parse_host_pattern(argument.substr(0, hash));
  const auto credential = argument.substr(hash);
  if (!pattern || pattern->kind != HostPattern::Kind::exact || credential.size() == 1 ||
      !std::all_of(credential.begin(), credential.end(), printable)) {
    return no_key;
  }
  return to_string(*pattern).append(credential);
}

bool key_matches(std::string_view argument, std::string_view key) {
  if (!key.starts_with(argument)) return false;
  const std::string_view rest = key.substr(argument.size());
  if (rest.empty()) return true;
  if (argument.starts_with(kPolicyPrefix)) return false;
  // An IPv6 address ends with its bracket, so that no colon in it is taken for a port's.
  return rest.front() == '#' || rest.front() == ':';
}

}  // namespace sluice
