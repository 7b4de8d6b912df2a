// What a command works on besides its arguments: the configuration, the policies and the store,
// read directly, so that a daemon may run, be gone, or hang. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/cli/command_line.h"
#include "proxy/governor/rulebook.h"
#include "proxy/known_keys.h"
#include "store/anomaly_record.h"
#include "store/job_record.h"
#include "store/store.h"

namespace sluice {

struct Memory {
  LoadedConfig loaded;
  std::string directory;  // of the store
  std::unique_ptr<Store> store;
  std::shared_ptr<const Rulebook> rules;
  std::optional<std::string> stop;  // the emergency stop in force, as a sentence
};

// What to do when there is no store yet.
enum class IfMissing : std::uint8_t {
  look,    // nothing: no folder is an error, an empty one is an empty store
  wait,    // make it in a folder that is there, and see what a daemon does with it
  create,  // the folder too
};

struct OpenedMemory {
  std::optional<Memory> memory;
  int exit_code = kExitOk;  // when there is none; why has been said on standard error
};
OpenedMemory open_memory(const CommandLine& line, IfMissing missing);

// What is to be said of the emergency stop; none: it is not in force.
std::optional<std::string> find_stop(const std::string& state_directory);

// Every key that read_key() gave the argument for, or all without one, in order.
Result<std::vector<KnownKey>> find_keys(Memory& memory, const std::optional<std::string>& argument,
                                        const ClockPair& now);

// The anomalies that go on, of the same keys.
Result<std::vector<NotedAnomaly>> find_anomalies(Memory& memory,
                                                 const std::optional<std::string>& argument,
                                                 const ClockPair& now);
// Every job that is remembered, in order of their names.
Result<std::vector<ListedJob>> find_jobs(Memory& memory, const ClockPair& now);

// "sluice: …" on standard error.
int complain(const std::string& sentence, int exit_code);

}  // namespace sluice
