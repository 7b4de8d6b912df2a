// The one sentence about a key that the log, the command line, the admin page and the body of a
// refusal all show. Only words: decides nothing, reads no clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/host_state.h"
#include "policy/time.h"

namespace sluice {

// "api.example.com is cooling down after 429 Too Many Requests: 41 s left, until 10:02:11 UTC".
// `now` and `utc_now` are the same moment on both clocks. Without a full stop.
std::string sentence(std::string_view key, const HostState& state, Instant now, UtcTime utc_now);

// Why the key was shut, as it stands in that sentence: "429 Too Many Requests"; empty when it is
// not.
std::string shut_by(const HostState& state);

// "429 Too Many Requests"; only the number when it has no name that we know.
std::string status_name(std::uint16_t status);

// "10:02:11 UTC", with the date in front when that is more than half a day from `utc_now`. Rounded
// up to the second, so that it is over by then.
std::string clock_time(UtcTime at, UtcTime utc_now);

// "2026-03-12T10:02:11Z" (RFC 3339), rounded up likewise.
std::string iso_time(UtcTime at);

// The word for scripts: "named-time", "consecutive", …; "none" when the key is not shut.
std::string_view cause_word(Cause cause);
std::string_view phase_word(Phase phase);

}  // namespace sluice
