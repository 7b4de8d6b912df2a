// `sluice env`: shell lines that point the usual clients at the proxy.
#include <filesystem>
#include <iostream>
#include <optional>

#include "proxy/cli/client_setup.h"
#include "proxy/cli/commands.h"
#include "proxy/daemon_record.h"
#include "proxy/job_name.h"

namespace sluice {
namespace {

struct EnvOptions {
  std::string shell, job;
};

// Nothing: one whose words we do not speak. A shell of an unknown name is taken for a POSIX one.
std::optional<Shell> shell_of(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  for (const char* other : {"csh", "tcsh", "elvish", "nu", "pwsh", "rc", "xonsh"}) {
    if (name == other) return std::nullopt;
  }
  return name == "fish" ? Shell::fish : Shell::posix;
}

int env(const CommandLine& line, const EnvOptions& options) {
  const std::string name = options.shell.empty() ? line.environment.get("SHELL") : options.shell;
  const auto shell = shell_of(name);
  if (!shell) {
    std::cerr << "sluice: env does not speak the language of " << name
              << "; --shell says whose lines to print: bash, zsh, sh or fish\n";
    return kExitUsage;
  }
  const LoadedConfig loaded = load_config(line.flags, line.environment);
  for (const Diagnostic& problem : loaded.problems) std::cerr << render(problem);
  if (!loaded.problems.empty()) return kExitUsage;
  const auto running = find_daemon(loaded.state_dir);
  ProxyAddress proxy =
      proxy_address(running ? running->address : loaded.config.proxy.listen.front());
  proxy.user = job_name(options.job);
  const auto variables = prepare_clients(loaded, proxy, line.environment);
  if (!variables) {
    std::cerr << "sluice: " << variables.error() << "\n";
    return kExitUsage;
  }
  std::cout << shell_lines(*variables, *shell);
  if (!running) {
    std::cerr << "sluice: no proxy is running yet; start one with `sluice run`\n";
  }
  return kExitOk;
}

}  // namespace

void add_env_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "env", "shell lines that point the usual clients at the proxy, CA included",
                  "  eval \"$(sluice env)\"\n"
                  "  eval \"$(sluice env --job nightly)\"\n"
                  "  sluice env --shell fish | source\n");
  add_config_flags(*command, line.flags);
  auto options = std::make_shared<EnvOptions>();
  command->add_option("--shell", options->shell, "bash, zsh, sh or fish; else what $SHELL says")
      ->check(CLI::IsMember({"bash", "zsh", "sh", "fish"}));
  command->add_option("--job", options->job, "the job that these clients belong to")
      ->type_name("NAME");
  command->callback(
      [&line, options] { line.chosen = [&line, options] { return env(line, *options); }; });
}

}  // namespace sluice
