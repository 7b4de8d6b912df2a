// `sluice stop` and `sluice resume`: the emergency stop. The file alone decides, so both work
// without a daemon, with a hung one, and with a store that cannot be opened.
#include <iostream>
#include <memory>

#include "policy/classify.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/patience.h"
#include "proxy/clock.h"
#include "proxy/daemon_record.h"
#include "proxy/stop_file.h"
#include "proxy/stop_switch.h"
#include "store/blocking.h"
#include "store/open.h"

namespace sluice {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);

// Gives why nothing was recorded, if so.
std::string append_stop(const LoadedConfig& loaded, bool in_force, const std::string& reason) {
  const UtcTime now = utc_now();
  const auto opened = open_store(loaded.config.store.url, loaded.state_dir, now);
  if (!opened) return opened.error();
  const auto recorded = wait_for([&](Completion done) {
    record_stop(*opened->store, in_force, stop_event(in_force, reason, now), std::move(done));
  });
  return recorded ? "" : recorded.error();
}

// The event is for later readers; what was asked for has happened already, and nobody who asked
// shall wait for long.
void record(const LoadedConfig& loaded, bool in_force, const std::string& reason) {
  const auto problem = within(kPatience, [&] { return append_stop(loaded, in_force, reason); });
  if (problem && problem->empty()) return;
  std::cerr << "sluice: no event was recorded: "
            << (problem ? *problem
                        : "another process is in the middle of a write to the store and does not "
                          "go on")
            << "\n";
  if (!problem) leave(kExitOk);
}

// Not even a broken configuration keeps anybody from stopping: where the state lies is known.
LoadedConfig load(const CommandLine& line) {
  LoadedConfig loaded = load_config(line.flags, line.environment);
  for (const Diagnostic& problem : loaded.problems) std::cerr << render(problem);
  return loaded;
}

int stop(const CommandLine& line, const std::string& given) {
  const LoadedConfig loaded = load(line);
  const std::string reason = printable(given, kMaxStopReason);
  const auto written = write_stop_file(loaded.state_dir, reason);
  if (!written) {
    std::cerr << "sluice: NOT stopped: " << written.error() << "\n";
    return kExitUnreachable;
  }
  if (!*written) std::cerr << "sluice: stopped, but the reason could not be written down\n";
  std::cout << "stopped: every proxy on " << loaded.state_dir
            << " forwards nothing until `sluice resume`" << std::endl;
  // A service of the system has another one than whoever asks.
  if (!find_daemon(loaded.state_dir)) {
    std::cerr << "sluice: no proxy is running there now; one with another state directory goes on: "
                 "name it with --state-dir\n";
  }
  if (loaded.problems.empty()) record(loaded, true, reason);
  return kExitOk;
}

int resume(const CommandLine& line) {
  const LoadedConfig loaded = load(line);
  const auto removed = remove_stop_file(loaded.state_dir);
  if (!removed) {
    std::cerr << "sluice: still stopped: " << removed.error() << "\n";
    return kExitUnreachable;
  }
  std::cout << (*removed ? "resumed" : "nothing was stopped") << std::endl;
  if (*removed && loaded.problems.empty()) record(loaded, false, "");
  return kExitOk;
}

}  // namespace

void add_stop_commands(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(app, "stop", "emergency stop: forward nothing, cut what is open",
                                  "  sluice stop\n"
                                  "  sluice stop --reason \"the crawler runs wild\"\n");
  add_config_flags(*command, line.flags);
  auto reason = std::make_shared<std::string>();
  command->add_option("--reason", *reason, "one line for those who will ask")->type_name("TEXT");
  command->callback(
      [&line, reason] { line.chosen = [&line, reason] { return stop(line, *reason); }; });

  command = add_command(app, "resume", "end an emergency stop", "  sluice resume\n");
  add_config_flags(*command, line.flags);
  command->callback([&line] { line.chosen = [&line] { return resume(line); }; });
}

}  // namespace sluice
