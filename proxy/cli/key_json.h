// A key and its state as JSON, for every command that has --json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "proxy/cli/memory.h"
#include "store/clock_pair.h"

namespace sluice {

// `rules`: of the key's policy.
nlohmann::json key_json(const KnownKey& known, const Rules& rules, const ClockPair& now);

// On one line; bytes that are no UTF-8 become U+FFFD.
std::string to_text(const nlohmann::json& json);

nlohmann::json noted_json(const NotedAnomaly& noted);

}  // namespace sluice
