#include "proxy/cli/commands.h"

namespace sluice {

void add_commands(CLI::App& app, CommandLine& line) {
  add_run_command(app, line);
  add_check_command(app, line);
  add_explain_command(app, line);
  add_status_command(app, line);
  add_open_command(app, line);
  add_close_command(app, line);
  add_events_command(app, line);
  add_budget_command(app, line);
  add_ca_command(app, line);
  add_env_command(app, line);
  add_exec_command(app, line);
  add_stop_commands(app, line);
}

}  // namespace sluice
