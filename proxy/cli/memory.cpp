#include "proxy/cli/memory.h"

#include <filesystem>
#include <iostream>
#include <iterator>

#include "policy/state_key.h"
#include "proxy/clock.h"
#include "proxy/policy_dir.h"
#include "proxy/stop_file.h"
#include "store/memory.h"
#include "store/open.h"

namespace sluice {
namespace {

// Gives the store, or says why there is none.
Result<OpenedStore> open_for_command(const Memory& memory, IfMissing missing) {
  const std::string& url = memory.loaded.config.store.url;
  if (url == "memory:")
    return Error{"the store is only in the daemon's own memory: store.url is \"memory:\""};
  std::error_code ignored;
  if (missing != IfMissing::create && !memory.directory.empty()) {
    if (!std::filesystem::exists(memory.directory, ignored))
      return Error{"there is no state directory " + memory.directory +
                   ": `sluice run` makes it, --state-dir names another one"};
    // Nothing has been written yet; whoever only looks does not make the files.
    if (missing == IfMissing::look &&
        !std::filesystem::exists(memory.directory + "/data.mdb", ignored))
      return OpenedStore{std::make_unique<MemoryStore>(), {}};
  }
  return open_store(url, memory.loaded.state_dir, utc_now());
}

}  // namespace

std::optional<std::string> find_stop(const std::string& state_directory) {
  const auto found = read_stop_file(state_directory);
  if (!found) return "nothing is forwarded, because " + found.error();
  if (!*found) return std::nullopt;
  return "nothing is forwarded until `sluice resume`" +
         ((*found)->empty() ? "" : " (" + **found + ")");
}

int complain(const std::string& sentence, int exit_code) {
  std::cerr << "sluice: " << sentence << "\n";
  return exit_code;
}

OpenedMemory open_memory(const CommandLine& line, IfMissing missing) {
  Memory memory;
  memory.loaded = load_config(line.flags, line.environment);
  for (const Diagnostic& problem : memory.loaded.problems) std::cerr << render(problem);
  if (!memory.loaded.problems.empty()) return {std::nullopt, kExitUsage};
  memory.directory = store_directory(memory.loaded.config.store.url, memory.loaded.state_dir);
  memory.rules = std::make_shared<const Rulebook>(
      load_policies(memory.loaded.policies_dir, memory.loaded.base));
  memory.stop = find_stop(memory.loaded.state_dir);
  auto opened = open_for_command(memory, missing);
  if (!opened) return {std::nullopt, complain(opened.error(), kExitUnreachable)};
  if (!opened->notice.empty()) complain(opened->notice, kExitOk);
  memory.store = std::move(opened->store);
  return {std::move(memory), kExitOk};
}

Result<std::vector<NotedAnomaly>> find_anomalies(Memory& memory,
                                                 const std::optional<std::string>& argument,
                                                 const ClockPair& now) {
  auto noted = load_anomalies(*memory.store, now);
  if (!noted || !argument) return noted;
  std::erase_if(*noted, [&](const NotedAnomaly& one) { return !key_matches(*argument, one.key); });
  return noted;
}

Result<std::vector<KnownKey>> find_keys(Memory& memory, const std::optional<std::string>& argument,
                                        const ClockPair& now) {
  const Duration longest = memory.rules->longest_cooldown();
  return argument ? find_keys(*memory.store, *argument, now, longest)
                  : all_keys(*memory.store, now, longest);
}

Result<std::vector<ListedJob>> find_jobs(Memory& memory, const ClockPair& now) {
  std::vector<ListedJob> jobs;
  for (bool more = true; more;) {
    auto page =
        list_jobs(*memory.store, jobs.empty() ? "" : jobs.back().place, kMaxPageEntries, now);
    if (!page) return Error{page.error()};
    more = page->more;
    std::move(page->jobs.begin(), page->jobs.end(), std::back_inserter(jobs));
  }
  return jobs;
}

}  // namespace sluice
