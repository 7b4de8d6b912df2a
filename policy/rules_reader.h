// The sections of a policy that hold its numbers ([classify] to [cost], and mode), read from TOML
// over the rules that stand. The same for a policy, for one of its roles and for [defaults].
#pragma once

#include <string>
#include <string_view>

#include "policy/policy.h"
#include "policy/toml_table.h"

namespace sluice {

void read_rules(const TomlTable& table, Rules& rules);

// RFC 9110 §5.6.2: what a method or a header name is made of; at most 64 of it.
bool is_short_token(std::string_view text);
std::string lower_case(std::string_view text);  // ASCII only

}  // namespace sluice
