// How one step of input or output went.
#pragma once

#include <cstdint>

namespace sluice {

enum class Io : std::uint8_t { moved, blocked, ended, failed };

}  // namespace sluice
