// `sluice run`: the proxy in the foreground.
#include <spdlog/spdlog.h>

#include <iostream>

#include "proxy/cli/commands.h"
#include "proxy/clock.h"
#include "proxy/logging.h"
#include "proxy/server.h"
#include "proxy/signals.h"

namespace sluice {
namespace {

int run(const CommandLine& line) {
  const LoadedConfig loaded = load_config(line.flags, line.environment);
  for (const Diagnostic& problem : loaded.problems) std::cerr << render(problem);
  if (!loaded.problems.empty()) return kExitUsage;
  take_over_signals();
  start_logging(loaded.config.log, line.environment.get("JOURNAL_STREAM"));
  for (const std::string& exposed : exposed_secrets(loaded)) spdlog::warn("{}", exposed);
  const auto give_up = [](const std::string& why, int exit_code) {
    std::cerr << "sluice: " << why << "\n";
    end_logging();
    return exit_code;
  };
  const UtcTime started = utc_now();
  auto store = Server::open_store(loaded, started);
  if (!store) return give_up(store.error(), kExitUnreachable);
  auto server = Server::make(loaded, std::move(*store), started);
  if (!server) return give_up(server.error(), kExitUsage);
  (*server)->run(std::cout);
  server->reset();
  end_logging();
  return kExitOk;
}

}  // namespace

void add_run_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(app, "run", "run the proxy in the foreground",
                                  "  sluice run\n"
                                  "  sluice run --listen 127.0.0.1:8888 --admin off\n"
                                  "  sluice run --config ./sluice.toml --set proxy.workers=1\n");
  add_config_flags(*command, line.flags);
  command->add_option("--listen", line.flags.listen, "where clients connect (127.0.0.1:7878)")
      ->type_name("ADDRESS:PORT");
  command
      ->add_option("--admin", line.flags.admin,
                   "where the admin side listens (127.0.0.1:7879), or off")
      ->type_name("ADDRESS:PORT");
  command->callback([&line] { line.chosen = [&line] { return run(line); }; });
}

}  // namespace sluice
