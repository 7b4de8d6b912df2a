// One policy file: TOML text over a base to a Policy, or everything that is wrong with it. Reads no
// disk and decides nothing. Includes the one reader of rules that roles and [defaults] share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/diagnostic.h"
#include "policy/policy.h"
#include "policy/toml_table.h"

namespace sluice {

struct PolicyFile {
  std::string file;
  Policy policy;
  std::vector<Place> hosts;  // where each of policy.hosts is written
};

struct PolicyReading {
  PolicyFile read;
  Diagnostics problems;  // not empty: `read` must not be used
};

// `base`: what [defaults] of sluice.toml says; its hosts and roles are not taken over.
PolicyReading read_policy(std::string_view text, const std::string& file, const Policy& base);

// The keys [defaults] may have: a policy's without hosts, paths and roles. Complaints go to the
// document the table belongs to.
void read_base_policy(const TomlTable& table, Policy& policy);

// "policies/github.toml" -> "github"
std::string policy_name(std::string_view file);

}  // namespace sluice
