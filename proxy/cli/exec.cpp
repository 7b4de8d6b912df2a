// `sluice exec … -- CMD`: runs a command whose clients use the proxy and trust its CA.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "policy/units.h"
#include "proxy/cli/child.h"
#include "proxy/cli/client_setup.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/exclusive.h"
#include "proxy/cli/private_proxy.h"
#include "proxy/daemon_record.h"
#include "proxy/exec_token.h"
#include "proxy/job_name.h"

namespace sluice {
namespace {

constexpr Duration kTick = 1s;

struct ExecOptions {
  std::string job, exclusive, ttl = "10m";
  std::uint64_t max_requests = 0;  // 0: no limit
  bool standalone = false;
  std::vector<std::string> command;
};

int fail(const std::string& message, int code = kExitUsage) {
  std::cerr << "sluice: " << message << "\n";
  return code;
}

std::string default_job(const std::string& command) {
  return std::filesystem::path(command).filename().string() + "-" + std::to_string(getpid());
}

std::vector<std::string> merged(const Environment& environment, const Variables& ours) {
  std::map<std::string, std::string> all = environment.variables;
  for (const auto& [name, value] : ours) all[name] = value;
  std::vector<std::string> out;
  for (const auto& [name, value] : all) out.push_back(name + "=" + value);
  return out;
}

// The child's own exit code, or one of ours.
int run(const CommandLine& line, const ExecOptions& options, const LoadedConfig& loaded,
        Exclusive* exclusive) {
  const auto token = ExecToken::load_or_make(loaded.state_dir);
  if (!token) return fail(token.error());
  std::optional<std::string> address;
  if (!options.standalone) address = find_daemon(loaded.state_dir);
  std::unique_ptr<PrivateProxy> own;
  if (!address) {
    auto started = PrivateProxy::start(line.flags, loaded, line.environment);
    if (!started) return fail(started.error(), kExitUnreachable);
    own = std::move(*started);
    address = own->address();
  }
  ProxyAddress proxy = proxy_address(*address);
  proxy.user = job_name(options.job.empty() ? default_job(options.command.front()) : options.job);
  proxy.password = token->password({std::to_string(getpid()), options.max_requests});
  const auto variables = prepare_clients(loaded, proxy, line.environment);
  if (!variables) return fail(variables.error());
  const auto child = start_child(
      {.command = options.command, .environment = merged(line.environment, *variables)});
  if (!child) return fail(child.error(), 127);
  bool warned = false;
  return wait_for_child(*child, kTick, [&] {
    if (exclusive == nullptr || exclusive->renew() || std::exchange(warned, true)) return;
    std::cerr << "sluice: the lock " << options.exclusive << " was lost while the command ran\n";
  });
}

int exec(const CommandLine& line, const ExecOptions& options) {
  if (options.command.empty()) return fail("there is no command; see `sluice exec --help`");
  const auto ttl = parse_duration(options.ttl);
  if (!ttl || *ttl < 1s) return fail("--ttl: \"" + options.ttl + "\" is not a time such as 10m");
  const LoadedConfig loaded = load_config(line.flags, line.environment);
  for (const Diagnostic& problem : loaded.problems) std::cerr << render(problem);
  if (!loaded.problems.empty()) return kExitUsage;
  hold_signals();
  std::unique_ptr<Exclusive> exclusive;
  if (!options.exclusive.empty()) {
    auto taken =
        Exclusive::take(loaded, job_name(options.exclusive), *ttl, options.command.front());
    if (!taken) return fail(taken.error(), kExitUnreachable);
    if (!taken->held) {
      return fail(options.exclusive + " is already running: " + taken->owner, kExitTryLater);
    }
    exclusive = std::move(taken->held);
  }
  return run(line, options, loaded, exclusive.get());
}

}  // namespace

void add_exec_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "exec", "run a command whose clients use the proxy, HTTPS included",
                  "  sluice exec -- python crawl.py\n"
                  "  sluice exec --job nightly --max-requests 5000 -- ./sync.sh\n"
                  "  sluice exec --exclusive sync --ttl 2h -- ./sync.sh     (exit 75: it is "
                  "running already)\n");
  add_config_flags(*command, line.flags);
  auto options = std::make_shared<ExecOptions>();
  command->add_option("--job", options->job, "its name (else the command's and a number)")
      ->type_name("NAME");
  command->add_option("--max-requests", options->max_requests, "refuse what goes beyond")
      ->type_name("N");
  command->add_option("--exclusive", options->exclusive, "run only if nobody else holds this name")
      ->type_name("NAME");
  command
      ->add_option("--ttl", options->ttl,
                   "how long a lock outlives an owner that died (10m); renewed while it runs")
      ->type_name("TIME");
  command->add_flag("--standalone", options->standalone,
                    "a proxy for this command alone, even if one is running");
  command->prefix_command();
  command->callback([&line, options, command] {
    options->command = line.behind_dashes;
    if (options->command.empty()) options->command = command->remaining();
    line.chosen = [&line, options] { return exec(line, *options); };
  });
}

}  // namespace sluice
