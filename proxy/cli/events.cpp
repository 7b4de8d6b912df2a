// `sluice events`: what happened, oldest first; with --follow also what happens.
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "policy/sentence.h"
#include "policy/state_key.h"
#include "policy/units.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/key_json.h"
#include "proxy/cli/memory.h"
#include "proxy/cli/terminal.h"
#include "proxy/clock.h"

namespace sluice {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(200);  // a memory read, mostly

struct EventOptions {
  std::optional<std::string> key, since;
  bool follow = false, json = false;
};

// "2026-03-12 10:02:11  transition  …": the kind padded to the longest of them.
std::string line_of(const Event& event, const Terminal& terminal) {
  std::string time = iso_time(event.at);
  time[time.find('T')] = ' ';
  time.pop_back();
  std::string kind(event_kind_name(event.kind));
  kind.resize(std::max<std::size_t>(kind.size(), 10), ' ');
  const Colour colour = event.kind == EventKind::transition || event.kind == EventKind::policy
                            ? Colour::none
                            : Colour::yellow;
  return terminal.paint(time, Colour::faint) + "  " + terminal.paint(kind, colour) + "  " +
         printable(event.text);
}

std::string json_of(const StoredEvent& stored) {
  return to_text({{"sequence", stored.sequence},
                  {"at", iso_time(stored.event.at)},
                  {"kind", event_kind_name(stored.event.kind)},
                  {"key", stored.event.key},
                  {"text", stored.event.text}});
}

class EventPrinter {
 public:
  EventPrinter(const EventOptions& options, const Terminal& terminal, UtcTime since)
      : options_(options), terminal_(terminal), since_(since) {}

  // Those after the last one seen; the number that was printed.
  Result<std::size_t> print_new(Store& store) {
    std::size_t printed = 0;
    while (true) {
      const auto events = store.events(last_, kMaxPageEntries);
      if (!events) return Error{events.error()};
      for (const StoredEvent& stored : *events) {
        last_ = stored.sequence;
        if (stored.event.at < since_) continue;
        if (options_.key && !key_matches(*options_.key, stored.event.key)) continue;
        std::cout << (options_.json ? json_of(stored) : line_of(stored.event, terminal_)) << "\n";
        ++printed;
      }
      if (events->size() < kMaxPageEntries) break;
    }
    std::cout.flush();
    return printed;
  }

 private:
  const EventOptions& options_;
  const Terminal terminal_;
  const UtcTime since_;
  std::uint64_t last_ = 0;
};

// Until it is interrupted, or nobody reads any more.
int follow(Store& store, EventPrinter& printer) {
  std::uint64_t seen = store.version();
  while (true) {
    const auto printed = printer.print_new(store);
    if (!printed) return complain(printed.error(), kExitUnreachable);
    while (store.version() == seen) {
      if (!std::cout) return kExitOk;
      std::this_thread::sleep_for(kLookEvery);
    }
    seen = store.version();
  }
}

int events(const CommandLine& line, EventOptions options) {
  if (options.key) {
    const auto key = read_key(*options.key);
    if (!key) return complain(key.error(), kExitUsage);
    options.key = *key;
  }
  UtcTime since = UtcTime::min();
  if (options.since) {
    const auto length = parse_duration(*options.since);
    if (!length) return complain("--since: " + length.error(), kExitUsage);
    since = utc_now() - *length;
  }
  OpenedMemory opened = open_memory(line, options.follow ? IfMissing::wait : IfMissing::look);
  if (!opened.memory) return opened.exit_code;
  EventPrinter printer(options, Terminal::of_output(line.environment), since);
  if (options.follow) return follow(*opened.memory->store, printer);
  const auto printed = printer.print_new(*opened.memory->store);
  if (!printed) return complain(printed.error(), kExitUnreachable);
  if (*printed == 0 && !options.json) std::cout << "nothing has happened\n";
  return kExitOk;
}

}  // namespace

void add_events_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "events", "list what happened: transitions, operators' acts, trouble",
                  "  sluice events --since 1h\n"
                  "  sluice events --key api.example.com --follow\n"
                  "  sluice events --json | jq .text       (one object per line)\n");
  add_config_flags(*command, line.flags);
  auto options = std::make_shared<EventOptions>();
  command->add_flag("--follow", options->follow, "go on with what happens, until interrupted");
  command->add_option("--key", options->key, "of this key only: a host, host:port or policy/NAME")
      ->type_name("KEY");
  command->add_option("--since", options->since, "not older than this: 90s, 10m, 2h, 1d")
      ->type_name("DURATION");
  command->add_flag("--json", options->json, "as JSON, one object per line");
  command->callback(
      [&line, options] { line.chosen = [&line, options] { return events(line, *options); }; });
}

}  // namespace sluice
