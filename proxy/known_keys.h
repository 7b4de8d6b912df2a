// What an operator means by a KEY: the stored keys it stands for, and whether requests are counted
// under it at all. The command line and the admin side ask the same questions. Any thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/governor/rulebook.h"
#include "store/hosts.h"
#include "store/store.h"

namespace sluice {

struct KnownKey {
  std::string key;
  std::optional<HostState> state;  // none: the record cannot be read
};

// Every stored key that `named`, as read_key() gives it, stands for; in order, the one of that very
// name first. Reads those of one host only.
Result<std::vector<KnownKey>> find_keys(Store& store, const std::string& named,
                                        const ClockPair& now, Duration longest);
// All there are.
Result<std::vector<KnownKey>> all_keys(Store& store, const ClockPair& now, Duration longest);

// The policy that answers for a key's host, as long as nothing is known of the path.
const Policy& policy_of(const Rulebook& rules, std::string_view key);

// "policy/NAME" for a host whose requests are all counted under its policy: nothing would ever ask
// about a key of its own. None: it has one.
std::optional<std::string> shared_key(const Rulebook& rules, const std::string& named);

// What stands above a key, the nearest first: of "h:8080#c" these are "h:8080" and "h"; empty where
// there is none. An order about one of them holds for keys that did not exist when it was given.
std::array<std::string_view, 2> keys_above(std::string_view key);

}  // namespace sluice
