// `sluice check [F…]`: validates configuration and policies without starting anything. Prints every
// error with its line and a caret, then a count. Reads files only; the caller passes the
// environment.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "proxy/config_reader.h"

namespace sluice {

// `files`: configurations (named sluice.toml), policies, or directories of policies; empty: what
// `sluice run` with these flags would use. Returns the exit code: 0, or 2 when anything is wrong.
int check_command(const std::vector<std::string>& files, const ConfigFlags& flags,
                  const Environment& environment, std::ostream& out);

}  // namespace sluice
