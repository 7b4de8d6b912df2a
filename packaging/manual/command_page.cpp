#include "command_page.h"

#include "roff.h"

namespace sluice::manual {
namespace {

std::string tag(const OptionEntry& option) {
  std::string out;
  if (option.positional) {
    out = italic(option.names.front());
  } else {
    for (const std::string& name : option.names) out += (out.empty() ? "" : ", ") + bold(name);
    if (!option.value.empty()) out += " " + italic(option.value);
  }
  return out;
}

std::string synopsis(const CommandEntry& command) {
  std::string out = bold("sluice " + command.name());
  for (const OptionEntry& option : command.flags()) {
    if (option.names.back() == "--help") continue;
    std::string one = bold(option.names.back());
    if (!option.value.empty()) one += " " + italic(option.value);
    out += " " + (option.required ? one : "[" + one + "]") + (option.many ? "..." : "");
  }
  for (const OptionEntry& option : command.positionals()) {
    const std::string one = italic(option.names.front()) + (option.many ? "..." : "");
    out += " " + (option.required ? one : "[" + one + "]");
  }
  if (!command.commands.empty()) out += " " + italic("COMMAND");
  return out;
}

void write_options(const CommandEntry& command, Page& page) {
  for (const OptionEntry& option : command.options) {
    page.term(tag(option));
    page.text(option.does);
  }
}

std::string_view examples_of(std::string_view footer) {
  constexpr std::string_view kTitle = "Examples:\n";
  if (footer.starts_with(kTitle)) footer.remove_prefix(kTitle.size());
  return footer;
}

// "  sluice run\n" -> "sluice run\n"
std::string without_indent(std::string_view lines) {
  std::string out;
  bool at_start = true;
  for (char c : lines) {
    if (at_start && c == ' ') continue;
    at_start = c == '\n';
    out += c;
  }
  return out;
}

void write_command(const CommandEntry& command, Page& page) {
  page.subheading("sluice " + command.name());
  page.paragraph_raw(synopsis(command));
  page.paragraph(command.does);
  write_options(command, page);
  if (!command.footer.empty() && command.commands.empty()) {
    page.paragraph("Examples:");
    page.verbatim(without_indent(examples_of(command.footer)));
  }
}

void write_environment(Page& page) {
  page.heading("Environment");
  page.term(bold("SLUICE_") + italic("SECTION") + bold("_") + italic("KEY"));
  page.text(
      "Overrides that setting of sluice.toml, such as SLUICE_PROXY_WORKERS=2 or "
      "SLUICE_DEFAULTS_PACE_MIN_DELAY=1s; the value is as in that file, except that a word needs "
      "no quotes. --set and the named options override both. See sluice.toml(5) for all of them.");
  page.term(bold("XDG_CONFIG_HOME") + ", " + bold("XDG_STATE_HOME") + ", " +
            bold("STATE_DIRECTORY"));
  page.text("Where configuration and state are, see FILES.");
  page.term(bold("LISTEN_FDS") + ", " + bold("NOTIFY_SOCKET") + ", " + bold("WATCHDOG_USEC") +
            ", " + bold("JOURNAL_STREAM"));
  page.text(
      "Set by systemd: listening sockets to take over, where to say that the proxy is ready and "
      "alive, and whether the log goes to the journal.");
}

void write_files(Page& page) {
  page.heading("Files");
  page.term(bold("$XDG_CONFIG_HOME/sluice/sluice.toml") + ", " +
            bold("~/.config/sluice/sluice.toml") + ", " + bold("/etc/sluice/sluice.toml"));
  page.text("The configuration: the first of these that is there. None is needed.");
  page.term(bold("policies/") + " beside it");
  page.text("One policy per file, named *.toml; see sluice.toml(5).");
  page.term(bold("$STATE_DIRECTORY") + ", " + bold("$XDG_STATE_HOME/sluice/") + ", " +
            bold("~/.local/state/sluice/") + ", " + bold("/var/lib/sluice/"));
  page.text("The state directory: the first that applies; the last one is root's.");
}

void write_signals(Page& page) {
  page.heading("Signals");
  page.term(bold("SIGTERM") + ", " + bold("SIGINT"));
  page.text(
      "Stop: no new connections, and requests under way have proxy.drain to finish. A second one "
      "ends at once.");
  page.term(bold("SIGHUP"));
  page.text("Reload. Connections are not touched; sluice.toml itself is read at start only.");
}

void write_exit_status(Page& page) {
  struct Row {
    const char *code, *means;
  };
  page.heading("Exit status");
  for (const Row& row :
       {Row{"0", "All is well."}, Row{"1", "The answer is \"no\"."},
        Row{"2", "Wrong usage or configuration."},
        Row{"3", "Neither the daemon nor the store can be reached."}, Row{"75", "Try later."}}) {
    page.term(bold(row.code));
    page.text(row.means);
  }
}

}  // namespace

std::string command_page(const CommandEntry& root) {
  Page page("SLUICE", "1", "a forward HTTP proxy that keeps clients inside the limits of APIs");
  page.heading("Synopsis");
  page.paragraph_raw(bold("sluice") + " " + italic("COMMAND") + " [" + italic("OPTION") + "...]");
  page.heading("Description");
  page.paragraph(root.does + ".");
  page.paragraph(
      "Clients use it as their HTTP proxy, unmodified. It learns from what the origins answer, "
      "slows down before they refuse, stops when they do, comes back carefully, and remembers "
      "across restarts.");
  write_options({{}, "", "", root.flags(), {}}, page);
  page.heading("Commands");
  for (const CommandEntry* command : flatten(root)) {
    if (!command->path.empty()) write_command(*command, page);
  }
  write_environment(page);
  write_files(page);
  write_signals(page);
  write_exit_status(page);
  page.heading("See also");
  page.paragraph_raw(bold("sluice.toml") + "(5), " + bold("systemd.socket") + "(5)");
  return page.roff();
}

}  // namespace sluice::manual
