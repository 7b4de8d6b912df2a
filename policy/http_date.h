// Dates as origins write them, from bytes to UtcTime. Pure and bounded: any bytes give a date or
// nothing.
#pragma once

#include <optional>
#include <string_view>

#include "policy/time.h"

namespace sluice {

// RFC 9110 §5.6.7: the preferred form and the two obsolete ones. `now` decides the century of a
// two-digit year: one that seems more than 50 years ahead is the most recent past one.
std::optional<UtcTime> parse_http_date(std::string_view text, UtcTime now);

// RFC 3339, with the parts that are left out in the wild: seconds and the zone (then UTC).
std::optional<UtcTime> parse_iso_date(std::string_view text);

}  // namespace sluice
