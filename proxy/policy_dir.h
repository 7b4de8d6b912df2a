// The policies directory: every *.toml in it, file by file, so that one bad file leaves the others,
// and its own last good version, in force. Reads the disk, watches nothing; whoever reloads passes
// the last load back in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "policy/diagnostic.h"
#include "policy/policy_set.h"

namespace sluice {

struct PolicyLoad {
  std::shared_ptr<const PolicySet> set;  // never null
  std::vector<PolicyFile> in_force;      // what the set was made of, sorted by file
  Diagnostics problems;                  // of the files as they are now; each was refused whole
};

// `directory` empty: no policies. `last`: the load before this one, for last good versions.
PolicyLoad load_policies(const std::string& directory, const Policy& base,
                         const PolicyLoad* last = nullptr);

// The *.toml files of a directory, sorted; hidden ones and those an editor leaves are not policies.
Result<std::vector<std::string>> policy_files(const std::string& directory);

}  // namespace sluice
