// The history of one key's request limits in the store, shared by all processes. Requests are taken
// from it in small blocks before they are sent, so that a crash wastes a block and never exceeds a
// limit. Times keep their meaning as in record.h: a wall clock that jumps neither stretches a
// window nor voids it within a boot.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/limit_window.h"
#include "store/clock_pair.h"
#include "store/store.h"

namespace sluice {

inline constexpr std::string_view kLimitPrefix = "limit/";

// Answered with how many of `want` may be sent until now + ahead; 0: none for now. `needed`: as in
// LimitAsk.
struct LimitBlockAsk {
  ClockPair now;
  Duration ahead{};
  std::uint64_t want = 1;
  bool needed = true;
};
void reserve_requests(Store& store, std::string_view name, std::vector<RequestLimit> limits,
                      const LimitBlockAsk& ask, Completion done);

// Gives back what was reserved with this end and not sent. Answered with 1.
void refund_requests(Store& store, std::string_view name, std::vector<RequestLimit> limits,
                     Instant until, std::uint64_t count, const ClockPair& now, Completion done);

Result<LimitHistory> limit_history(Store& store, std::string_view name, const ClockPair& now);

// Nothing in it counts any more.
bool limits_are_over(std::string_view bytes, const ClockPair& now);

std::string encode_limits(const LimitHistory& history, const ClockPair& now);
Result<LimitHistory> decode_limits(std::string_view bytes, const ClockPair& now);

}  // namespace sluice
