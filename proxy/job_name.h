// A job's name as it is kept, shown and compared, from whatever a client wrote as its user name.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

inline constexpr std::size_t kJobNameLimit = 64;

// Letters, digits and ". _ - @ +" stay; every other byte becomes a "_", and what is too long is
// cut. Empty stays empty: no job.
std::string job_name(std::string_view written);

}  // namespace sluice
