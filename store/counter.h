// Allowances that several processes use up together: budgets and window counts. An amount is taken
// from the store in a block before it is spent, so that a crash wastes at most a block and the
// limit is never exceeded. The name says what is counted and for which time ("budget/2026-03-12").
#pragma once

#include <cstdint>
#include <string_view>

#include "policy/time.h"
#include "store/store.h"

namespace sluice {

inline constexpr std::string_view kCounterPrefix = "count/";

// Answered with how much of `amount` was granted: 0 when `limit` is used up. From `ends` on, the
// counter may be forgotten.
void reserve(Store& store, std::string_view name, std::uint64_t amount, std::uint64_t limit,
             UtcTime ends, Completion done);

// Adds what has been spent already, whatever the limit says. Answered with the amount.
void charge(Store& store, std::string_view name, std::uint64_t amount, UtcTime ends,
            Completion done);

// Gives back what was reserved and not spent. Answered with how much was.
void refund(Store& store, std::string_view name, std::uint64_t amount, Completion done);

// How much is reserved in all.
Result<std::uint64_t> reserved(Store& store, std::string_view name);

bool counter_is_over(std::string_view bytes, UtcTime now);

}  // namespace sluice
