// The command line: which sub-command was asked for, and what every one of them shares. Each
// command has a file of its own with one add_…_command(); commands.cpp lists them.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "proxy/config_reader.h"

namespace sluice {

// DESIGN §1: scripts rely on these.
enum ExitCode : int {
  kExitOk = 0,
  kExitNo = 1,           // the answer is "no"
  kExitUsage = 2,        // usage or configuration
  kExitUnreachable = 3,  // neither the daemon nor the store
  kExitTryLater = 75,
};

struct CommandLine {
  Environment environment;
  ConfigFlags flags;
  std::vector<std::string> from_dashes;  // of `exec`: "--" and what follows, not ours to read
  std::function<int()> chosen;           // set by the command that was named; gives the exit code
};

// --config, --policies, --state-dir and --set, with the same meaning everywhere.
void add_config_flags(CLI::App& command, ConfigFlags& flags);

// A sub-command with examples at the end of its --help.
CLI::App* add_command(CLI::App& app, const char* name, const char* does, const char* examples);

// Names everything that can be said, for parsing it and for the manual alike.
void describe_command_line(CLI::App& app, CommandLine& line);

// Parses, runs the chosen command and gives the exit code.
int run_command_line(int argc, const char* const* argv, Environment environment);

}  // namespace sluice
