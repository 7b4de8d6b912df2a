// What a request costs, in millionths of the budget's currency: whole numbers, so that no sum is
// ever off by a rounding. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/policy.h"

namespace sluice {

using Micros = std::int64_t;  // millionths of a unit of money; never negative but in differences

Micros to_micros(double money);

// Before it is sent, by the path rules and else by per_request; at least a millionth, if it costs
// anything. The query is not looked at.
Micros request_cost(const CostRules& rules, std::string_view path);

// What a response header says: a decimal number, "0.0125" or "1.25e-02", rounded up to a millionth.
// None: it is no such thing.
std::optional<Micros> parse_cost(std::string_view value);

// "12.50", "0.0125": two decimals or as many as it takes.
std::string format_money(Micros amount);

}  // namespace sluice
