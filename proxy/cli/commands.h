// Every sub-command of sluice, in the order in which --help lists them.
#pragma once

#include "proxy/cli/command_line.h"

namespace sluice {

void add_run_command(CLI::App& app, CommandLine& line);
void add_check_command(CLI::App& app, CommandLine& line);
void add_explain_command(CLI::App& app, CommandLine& line);
void add_status_command(CLI::App& app, CommandLine& line);
void add_open_command(CLI::App& app, CommandLine& line);
void add_close_command(CLI::App& app, CommandLine& line);
void add_events_command(CLI::App& app, CommandLine& line);
void add_budget_command(CLI::App& app, CommandLine& line);
void add_ca_command(CLI::App& app, CommandLine& line);
void add_env_command(CLI::App& app, CommandLine& line);
void add_exec_command(CLI::App& app, CommandLine& line);
void add_stop_commands(CLI::App& app, CommandLine& line);  // stop and resume

void add_commands(CLI::App& app, CommandLine& line);

}  // namespace sluice
