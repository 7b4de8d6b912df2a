#include "policy/inside_needs.h"

#include <algorithm>

namespace sluice {

std::vector<std::string> inside_needs(const Policy& policy) {
  std::vector<std::string> out;
  const auto any_rules = [&](auto holds) {
    return holds(policy.rules) || std::any_of(policy.roles.begin(), policy.roles.end(),
                                              [&](const Role& role) { return holds(role.rules); });
  };
  if (policy.paths != Policy().paths) out.emplace_back("paths");
  if (!policy.roles.empty()) out.emplace_back("roles");
  if (policy.scope == Scope::credential) out.emplace_back("scope = \"credential\"");
  if (any_rules([](const Rules& rules) { return rules.pace.crawl_delay; }))
    out.emplace_back("pace.crawl_delay");
  if (any_rules([](const Rules& rules) { return rules.cost.per_request > 0; }))
    out.emplace_back("cost.per_request");
  if (any_rules([](const Rules& rules) { return !rules.cost.paths.empty(); }))
    out.emplace_back("cost.paths");
  if (any_rules([](const Rules& rules) { return !rules.cost.header.empty(); }))
    out.emplace_back("cost.header");
  return out;
}

}  // namespace sluice
