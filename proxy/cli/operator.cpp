// `sluice open KEY --for 10m` and `sluice close KEY`: an operator's word, written to the store in
// one step per key, so that a running daemon has it at its next decision and can not undo it.
#include <algorithm>
#include <iostream>

#include "policy/breaker.h"
#include "policy/sentence.h"
#include "policy/state_key.h"
#include "policy/units.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/memory.h"
#include "proxy/cli/patience.h"
#include "proxy/cli/terminal.h"
#include "proxy/clock.h"
#include "store/blocking.h"

namespace sluice {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);

struct Order {
  std::string key;
  std::string length{}, reason{};
};

using Act = std::function<HostState(HostState, Instant now)>;

// Who gives the order, for the event; empty: not known.
std::string operator_name(const Environment& environment) {
  const std::string behind_sudo = environment.get("SUDO_USER");
  return printable(behind_sudo.empty() ? environment.get("USER") : behind_sudo).substr(0, 64);
}

// The new state of each key on standard output, an event for each in the store.
int carry_out(Memory& memory, const std::vector<std::string>& keys, const Act& act,
              const std::string& words) {
  for (const std::string& key : keys) {
    const ClockPair now = clock_now();
    const auto written = within(kPatience, [&] {
      return wait_for([&](Completion done) {
        change_host(
            *memory.store, key, now, memory.rules->longest_cooldown(),
            [&](HostState state) { return act(std::move(state), now.mono); }, std::move(done));
        memory.store->append({now.utc, EventKind::operator_act, key, key + " " + words}, {});
      });
    });
    if (!written) {
      complain("another process is in the middle of a write to " + memory.directory +
                   " and does not go on: nothing was changed for " + key,
               kExitUnreachable);
      leave(kExitUnreachable);
    }
    if (!*written) return complain(written->error(), kExitUnreachable);
    const auto stored = load_host(*memory.store, key, now, memory.rules->longest_cooldown());
    if (!stored) return complain(stored.error(), kExitUnreachable);
    std::cout << printable(sentence(key, stored->state, now.mono, now.utc)) << "\n";
  }
  return kExitOk;
}

int open_key(const CommandLine& line, const Order& order) {
  const auto key = read_key(order.key);
  if (!key) return complain(key.error(), kExitUsage);
  const auto length = parse_duration(order.length);
  if (!length) return complain("--for: " + length.error(), kExitUsage);
  if (*length == Duration(0)) return complain("--for must be longer than nothing", kExitUsage);
  OpenedMemory opened = open_memory(line, IfMissing::create);
  if (!opened.memory) return opened.exit_code;
  Memory& memory = *opened.memory;
  const auto known = find_keys(memory, *key, clock_now());
  if (!known) return complain(known.error(), kExitUnreachable);
  std::vector<std::string> keys;
  for (const KnownKey& found : *known) keys.push_back(found.key);
  if (keys.empty()) {
    if (const auto shared = shared_key(*memory.rules, *key))
      return complain(*key +
                          " has no state of its own, it is under one with all hosts of its "
                          "policy: sluice open " +
                          *shared + " --for " + order.length,
                      kExitUsage);
  }
  // Also where nobody has asked yet.
  if (std::find(keys.begin(), keys.end(), *key) == keys.end()) keys.insert(keys.begin(), *key);
  const std::string who = operator_name(line.environment);
  return carry_out(
      memory, keys,
      [&](HostState state, Instant now) {
        return operator_open(std::move(state), now, *length, order.reason);
      },
      "was shut for " + format_duration(*length) + " by " + (who.empty() ? "an operator" : who) +
          (order.reason.empty() ? "" : ": " + order.reason));
}

int close_key(const CommandLine& line, const Order& order) {
  const auto key = read_key(order.key);
  if (!key) return complain(key.error(), kExitUsage);
  OpenedMemory opened = open_memory(line, IfMissing::look);
  if (!opened.memory) return opened.exit_code;
  Memory& memory = *opened.memory;
  const auto known = find_keys(memory, *key, clock_now());
  if (!known) return complain(known.error(), kExitUnreachable);
  if (known->empty()) return complain("nothing is known about " + *key, kExitNo);
  std::vector<std::string> keys;
  for (const KnownKey& found : *known) keys.push_back(found.key);
  const std::string who = operator_name(line.environment);
  return carry_out(
      memory, keys,
      [](HostState state, Instant now) { return operator_close(std::move(state), now); },
      "was cleared by " + (who.empty() ? "an operator" : who));
}

}  // namespace

void add_open_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(app, "open", "shut a key for some time, daemon or not",
                                  "  sluice open api.example.com --for 10m\n"
                                  "  sluice open policy/github --for 2h --reason \"ask Ada\"\n");
  add_config_flags(*command, line.flags);
  auto order = std::make_shared<Order>();
  command->add_option("key", order->key, "a host (all its keys), host:port or policy/NAME")
      ->type_name("KEY")
      ->required();
  command->add_option("--for", order->length, "how long: 90s, 10m, 2h, 1d")
      ->type_name("DURATION")
      ->required();
  command->add_option("--reason", order->reason, "shown to everybody who is refused")
      ->type_name("TEXT");
  command->callback(
      [&line, order] { line.chosen = [&line, order] { return open_key(line, *order); }; });
}

void add_close_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(
      app, "close", "clear a key: its cooldown, its levels, and what was held against it",
      "  sluice close api.example.com\n"
      "  sluice close policy/github\n");
  add_config_flags(*command, line.flags);
  auto order = std::make_shared<Order>();
  command->add_option("key", order->key, "a host (all its keys), host:port or policy/NAME")
      ->type_name("KEY")
      ->required();
  command->callback(
      [&line, order] { line.chosen = [&line, order] { return close_key(line, *order); }; });
}

}  // namespace sluice
