// An event that must be told once, however many processes on one store notice what it is about: a
// stop, a budget's mark. The store keeps the last state of each name; whoever changes it tells.
#pragma once

#include <string>
#include <string_view>

#include "store/store.h"

namespace sluice {

inline constexpr std::string_view kNoticePrefix = "notice/";
// The name of a key's notice begins with it; it goes when the host's record goes.
inline constexpr std::string_view kSlowOpenNotice = "slow-open/";

// Appends the event if the last state told of `name` was another one. Answered with 1 for the one
// whose event it is, 0 for everybody else. The store must outlive the completion.
void append_once(Store& store, std::string_view name, std::string state, const Event& event,
                 Completion done);

}  // namespace sluice
