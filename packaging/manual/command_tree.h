// The command line as data: every command and option, walked out of the same CLI::App that parses
// them, for the man page and the completions. Knows nothing of either.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sluice::manual {

struct OptionEntry {
  std::vector<std::string> names;  // "--config", "-h"; of a positional: its one name
  std::string value;               // "FILE"; empty: takes none
  std::string does;
  bool positional = false;
  bool required = false;
  bool many = false;
};

struct CommandEntry {
  std::vector<std::string> path;  // {"ca", "init"}; empty: sluice itself
  std::string does;
  std::string footer;  // its examples
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> commands;

  std::string name() const;  // "ca init"
  std::vector<OptionEntry> flags() const;
  std::vector<OptionEntry> positionals() const;
};

// Without what is hidden, that is, in the group "".
CommandEntry command_tree(const CLI::App& app);

// What a value is, by the name it was given: for completion.
enum class ValueKind { none, file, directory, command, other };
ValueKind kind_of(const OptionEntry& option);

// A command and all below it, parents first.
std::vector<const CommandEntry*> flatten(const CommandEntry& root);

}  // namespace sluice::manual
