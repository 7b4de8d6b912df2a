// Text that nobody can guess: for secrets and for names that must not meet. Any thread.
#pragma once

#include <cstddef>
#include <string>

namespace sluice {

// Two hexadecimal digits for each byte. Aborts when there is no randomness.
std::string random_hex(std::size_t bytes);

}  // namespace sluice
