// Tells whether a file is another one, or may be read by others, than the last time. Any thread.
#pragma once

#include <string>

namespace sluice {

// Of its last change, its identity and its mode; "-": there is none.
std::string file_stamp(const std::string& path);

}  // namespace sluice
