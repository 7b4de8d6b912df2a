// Completions for the shells, one script each, from the same tree as --help and the man page.
#pragma once

#include <string>

#include "command_tree.h"

namespace sluice::manual {

std::string bash_completion(const CommandEntry& root);
std::string zsh_completion(const CommandEntry& root);
std::string fish_completion(const CommandEntry& root);

}  // namespace sluice::manual
