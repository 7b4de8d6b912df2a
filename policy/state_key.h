// The name of what a state belongs to: a host, a whole policy, or a host and a credential. Stored,
// printed and typed by operators. Pure text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/policy.h"
#include "policy/result.h"

namespace sluice {

// "api.example.com", "api.example.com:8080" when the port is not the scheme's own, "policy/github",
// "api.example.com#1f2e3d4c5b6a7988". `credential`: its salted hash, empty when there is none.
void append_state_key(std::string& out, const Policy& policy, std::string_view host,
                      std::uint16_t port, bool secure, std::string_view credential);

// A KEY as an operator writes it, in the one spelling of the stored ones: "API.example.com." is
// "api.example.com", "::1" is "[::1]". An error when it can be no key.
Result<std::string> read_key(std::string_view argument);

// Whether a stored key is meant by what read_key() gave: the same one, or, of a bare host, every
// key of that host, and of a host with its port, every credential's there.
bool key_matches(std::string_view argument, std::string_view key);

}  // namespace sluice
