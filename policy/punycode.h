// One label of a host name in the form DNS carries: RFC 3492 with the prefix of RFC 5890.
// Lower-cases ASCII only and maps nothing else, so what needs a mapping is refused instead of
// guessed.
#pragma once

#include <string>
#include <string_view>

#include "policy/result.h"

namespace sluice {

// "münchen" -> "xn--mnchen-3ya"; an ASCII label comes back in lower case.
Result<std::string> to_ascii_label(std::string_view label);

}  // namespace sluice
