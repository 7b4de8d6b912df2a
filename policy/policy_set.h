// All policies in force, and which one answers for a request: the most specific host, then the most
// specific path. Immutable once built, so any thread may ask; a reload builds another set. A match
// allocates nothing and costs a few hash look-ups however many policies there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/host_pattern.h"
#include "policy/name_table.h"
#include "policy/policy.h"
#include "policy/policy_file.h"

namespace sluice {

struct PolicyMatch {
  const Policy* policy = nullptr;  // never null in a result
  const Role* role = nullptr;      // null: none, the policy's own rules
  const Rules& rules() const { return role != nullptr ? role->rules : policy->rules; }
};

class PolicySet {
 public:
  // A set with no policies: `fallback` answers for every host. It is named "default".
  explicit PolicySet(Policy fallback = {});

  // Takes the file in, or says with which other file it collides and takes nothing. Only while
  // building: never on a set that is shared.
  Diagnostics add(const PolicyFile& file);

  // `host` as the request names it, in any spelling; `path` without or with its query. An empty
  // path is one not known yet (CONNECT): of the policies that share the most specific host, one
  // that says `intercept = false` answers, else one that says `true`, else the most general one;
  // without a role.
  PolicyMatch match(std::string_view host, std::uint16_t port, std::string_view path) const;

  const Policy& fallback() const { return *fallback_; }
  const std::vector<std::shared_ptr<const Policy>>& policies() const { return policies_; }
  // Those of policies and roles, the fallback's included: Rules::number is below it.
  std::uint32_t rules_count() const { return rules_count_; }

 private:
  struct PathEntry {
    std::string path;
    const Policy* policy;
    std::string file;  // for the message about a second claim
  };
  // Most specific path first.
  using PathList = std::vector<PathEntry>;
  struct Slot {
    const Policy* always = nullptr;  // the only one, for any port and path: nothing else is read
    PathList any_port;
    std::vector<std::pair<std::uint16_t, PathList>> by_port;
    PathList& list(std::uint16_t port);
    const Policy* find(std::uint16_t port, std::string_view path) const;
  };
  std::shared_ptr<const Policy> numbered(Policy policy);
  Slot& slot(const HostPattern& pattern);
  const Policy* find_policy(std::string_view name, std::uint16_t port, std::string_view path) const;
  const Policy* find_by_suffix(std::string_view name, std::uint16_t port,
                               std::string_view path) const;

  std::shared_ptr<const Policy> fallback_;
  std::vector<std::shared_ptr<const Policy>> policies_;
  NameTable<Slot> exact_, suffix_;
  Slot any_;
  std::uint32_t rules_count_ = 0;
  std::size_t longest_suffix_ = 0;  // in labels: longer tails of a name need no look-up
};

}  // namespace sluice
