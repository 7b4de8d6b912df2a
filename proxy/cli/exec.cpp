// `sluice exec … -- CMD`: runs a command whose clients use the proxy and trust its CA.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <optional>

#include "policy/units.h"
#include "proxy/cli/child.h"
#include "proxy/cli/client_setup.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/exclusive.h"
#include "proxy/cli/exec_summary.h"
#include "proxy/cli/private_proxy.h"
#include "proxy/cli/run_door.h"
#include "proxy/clock.h"
#include "proxy/daemon_record.h"
#include "proxy/door/doorkeeper.h"
#include "proxy/job_name.h"
#include "proxy/random_text.h"

namespace sluice {
namespace {

constexpr Duration kTick = 1s;
constexpr Duration kShortestTtl = 1s;  // four renewals are tried in it
constexpr Duration kMercy = 10s;       // between SIGTERM and SIGKILL
constexpr Duration kPatience = 2s;     // for what the same Ctrl-C ends
constexpr std::size_t kRunBytes = 8;

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

// What the command runs on: the lock, and the proxy of its own. Says so when one of them is gone.
class Ground {
 public:
  Ground(const std::string& lock, Exclusive* exclusive, PrivateProxy* proxy)
      : lock_(lock), exclusive_(exclusive), proxy_(proxy) {}

  Duration interval() const { return exclusive_ ? exclusive_->interval() : kTick; }
  bool lock_lost() const { return ended_.has_value(); }

  void look(pid_t child) {
    if (proxy_ != nullptr && proxy_->has_ended()) {
      proxy_ = nullptr;
      std::cerr << "sluice: the proxy for this command has ended; what the command asks of it from "
                   "now on fails\n";
    }
    if (exclusive_ == nullptr) return;
    const Instant now = monotonic_now();
    if (!ended_) {
      const std::string holder = exclusive_->renew();
      if (holder.empty()) return;
      std::cerr << "sluice: the lock " << lock_ << " was lost (" << holder
                << "), so the command is ended\n";
      ended_ = now;
      kill(child, SIGTERM);
    } else if (now - *ended_ >= kMercy) {
      kill(child, SIGKILL);
    }
  }

 private:
  const std::string lock_;
  Exclusive* exclusive_;
  PrivateProxy* proxy_;
  std::optional<Instant> ended_;  // when the child was told to end
};

// The settings of a daemon that runs are its own.
void warn_about_settings(const ConfigFlags& flags, const std::string& address) {
  if (!flags.config && !flags.policies && flags.set.empty()) return;
  std::cerr
      << "sluice: the proxy at " << address
      << " is running with settings of its own: --config, --policies and --set change nothing "
         "there (--standalone starts one for which they count)\n";
}

// The last line.
void summarise(const std::string& job, const std::optional<JobState>& state,
               const std::string& currency) {
  std::cerr << "sluice: "
            << (state ? run_summary(job, *state, currency)
                      : "job " + job + ": its proxy has ended, so what it did cannot be told")
            << "\n";
}

// The proxy that the command's clients are led to.
struct Host {
  std::unique_ptr<PrivateProxy> own;  // null: the daemon
  RunDoor::Find find;
};

Result<Host> find_host(const CommandLine& line, const ExecOptions& options,
                       const LoadedConfig& loaded) {
  const std::string& directory = loaded.state_dir;
  const auto daemon = options.standalone ? std::nullopt : find_daemon(directory);
  if (daemon) {
    warn_about_settings(line.flags, daemon->address);
    return Host{nullptr, [directory]() -> std::optional<std::string> {
                  const auto now = find_daemon(directory);
                  if (!now) return std::nullopt;
                  return door_path(directory, now->process);
                }};
  }
  auto started = PrivateProxy::start(line.flags, loaded, line.environment);
  if (!started) return Error{started.error()};
  const std::string path = door_path(directory, (*started)->process());
  return Host{std::move(*started), [path] { return path; }};
}

// The child's own exit code, or one of ours.
int run(const CommandLine& line, const ExecOptions& options, const LoadedConfig& loaded,
        const std::string& run_name, Exclusive* exclusive) {
  auto host = find_host(line, options, loaded);
  if (!host) return fail(host.error(), kExitUnreachable);
  const std::string job =
      job_name(options.job.empty() ? default_job(options.command.front()) : options.job);
  auto door = RunDoor::open({job, run_name, options.max_requests, options.job.empty()}, host->find);
  if (!door) return fail(door.error(), kExitUnreachable);
  ProxyAddress proxy = proxy_address((*door)->address().text());
  proxy.user = job;
  const auto variables = prepare_clients(loaded, proxy, line.environment);
  if (!variables) return fail(variables.error());
  if (const auto number = early_end()) return 128 + *number;
  const StartedChild child = start_child(
      {.command = options.command, .environment = merged(line.environment, *variables)});
  if (child.process < 0) return fail(child.error, child.exit_code);
  (*door)->start();
  Ground ground(options.exclusive, exclusive, host->own.get());
  const ChildEnd end =
      wait_for_child(child.process, ground.interval(), [&] { ground.look(child.process); });
  const auto state = (*door)->close();
  if (host->own) host->own->end();
  summarise(job, state, loaded.config.budget.currency);
  if (exclusive != nullptr && end.by_signal && !is_alone_within(kPatience)) {
    std::cerr << "sluice: what the command has started goes on without it, so the lock "
              << options.exclusive << " is kept until its time is over (" << options.ttl << ")\n";
    exclusive->leave_to_its_end();
  }
  return ground.lock_lost() ? kExitTryLater : end.exit_code;
}

// Everything from the first word that is none of ours. Ours end at the first "--" at the latest.
std::vector<std::string> words_of_command(const CommandLine& line,
                                          std::vector<std::string> unread) {
  if (!unread.empty() && unread.front().starts_with('-')) {
    throw CLI::ExtrasError(std::vector<std::string>{unread.front()});
  }
  const bool led_by_dashes = unread.empty() && !line.from_dashes.empty();
  unread.insert(unread.end(), line.from_dashes.begin() + (led_by_dashes ? 1 : 0),
                line.from_dashes.end());
  return unread;
}

std::string problem_of_count(const std::string& text) {
  const bool number = text.find_first_not_of("0123456789") == std::string::npos;
  const bool some = text.find_first_not_of('0') != std::string::npos;
  return number && some ? "" : "\"" + text + "\" is not a number of requests, 1 at least";
}

// Two names must not become one, so none is changed. Empty is a variable that was not set.
std::string problem_of_lock(const std::string& name) {
  if (!name.empty() && job_name(name) == name) return "";
  return "\"" + name + "\" is no name for a lock: letters, digits and . _ - @ +, " +
         std::to_string(kJobNameLimit) + " at most";
}

int exec(const CommandLine& line, const ExecOptions& options) {
  if (options.command.empty()) return fail("there is no command; see `sluice exec --help`");
  const auto ttl = parse_duration(options.ttl);
  if (!ttl) return fail("--ttl: \"" + options.ttl + "\" is not a time such as 10m");
  if (*ttl < kShortestTtl) return fail("--ttl: a lock lasts 1s at least");
  const LoadedConfig loaded = load_config(line.flags, line.environment);
  for (const Diagnostic& problem : loaded.problems) std::cerr << render(problem);
  if (!loaded.problems.empty()) return kExitUsage;
  hold_signals();
  const std::string run_name = random_hex(kRunBytes);
  std::unique_ptr<Exclusive> exclusive;
  if (!options.exclusive.empty()) {
    auto taken =
        Exclusive::take(loaded, options.exclusive, *ttl, run_name, options.command.front());
    if (!taken) return fail(taken.error(), kExitUnreachable);
    if (!taken->held) {
      return fail(options.exclusive + " is already running: " + taken->owner, kExitTryLater);
    }
    exclusive = std::move(taken->held);
    adopt_orphans();
  }
  return run(line, options, loaded, run_name, exclusive.get());
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
      ->type_name("N")
      ->check(problem_of_count);
  CLI::Option* exclusive =
      command
          ->add_option("--exclusive", options->exclusive, "run only if nobody else holds this name")
          ->type_name("NAME")
          ->check(problem_of_lock);
  command
      ->add_option("--ttl", options->ttl,
                   "how long a lock outlives an owner that died (10m, 1s at least); renewed while "
                   "the command runs, which is ended should the lock be lost")
      ->type_name("TIME")
      ->needs(exclusive);
  command->add_flag("--standalone", options->standalone,
                    "a proxy for this command alone, even if one is running");
  command->prefix_command();
  command->callback([&line, options, command] {
    options->command = words_of_command(line, command->remaining());
    line.chosen = [&line, options] { return exec(line, *options); };
  });
}

}  // namespace sluice
