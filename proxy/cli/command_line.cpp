#include "proxy/cli/command_line.h"

#include <algorithm>

#include "proxy/cli/commands.h"

namespace sluice {

void add_config_flags(CLI::App& command, ConfigFlags& flags) {
  command.add_option("--config", flags.config, "the configuration file (sluice.toml)")
      ->type_name("FILE");
  command.add_option("--policies", flags.policies, "the directory of policies")->type_name("DIR");
  command.add_option("--state-dir", flags.state_dir, "where state is kept")->type_name("DIR");
  command.add_option("--set", flags.set, "one setting, VALUE as TOML; may be repeated")
      ->type_name("SECTION.KEY=VALUE")
      ->expected(1)
      ->take_all();
}

CLI::App* add_command(CLI::App& app, const char* name, const char* does, const char* examples) {
  CLI::App* command = app.add_subcommand(name, does);
  command->footer(std::string("Examples:\n") + examples);
  return command;
}

void describe_command_line(CLI::App& app, CommandLine& line) {
  app.description(
      "Sluice: a forward HTTP proxy that keeps clients inside the limits of the APIs they call");
  app.name("sluice");
  app.require_subcommand(1);
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.footer("`sluice COMMAND --help` says more, with examples.");
  add_commands(app, line);
}

int run_command_line(int argc, const char* const* argv, Environment environment) {
  CLI::App app;
  CommandLine line;
  line.environment = std::move(environment);
  const bool runs = argc > 1 && std::string_view(argv[1]) == "exec";
  const auto dashes = std::find(argv, argv + argc, std::string_view("--"));
  if (runs && dashes != argv + argc) {
    line.from_dashes.assign(dashes, argv + argc);
    argc = static_cast<int>(dashes - argv);
  }
  describe_command_line(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return line.chosen();
}

}  // namespace sluice
