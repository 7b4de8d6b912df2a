// sluice(1): every command, from the tree that --help is made of, and what they have in common.
#pragma once

#include <string>

#include "command_tree.h"

namespace sluice::manual {

std::string command_page(const CommandEntry& root);

}  // namespace sluice::manual
