#include "completions.h"

namespace sluice::manual {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// When the words so far are this command's, and none of those below it.
std::string condition(const CommandEntry& command) {
  std::string out;
  for (const std::string& word : command.path) {
    out += (out.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
  }
  if (!command.commands.empty()) {
    out += (out.empty() ? "" : "; and ") + std::string("not __fish_seen_subcommand_from");
    for (const CommandEntry& below : command.commands) out += " " + below.path.back();
  }
  return in_quotes(out);
}

std::string option_line(const std::string& start, const OptionEntry& option) {
  std::string out = start;
  for (const std::string& name : option.names) {
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  switch (kind_of(option)) {
    case ValueKind::none: break;
    case ValueKind::file: out += " -r -F"; break;
    case ValueKind::directory: out += " -x -a '(__fish_complete_directories)'"; break;
    default: out += " -x"; break;
  }
  return out + " -d " + in_quotes(option.does) + "\n";
}

}  // namespace

std::string fish_completion(const CommandEntry& root) {
  std::string out =
      "# fish completion for sluice; generated from its command line.\ncomplete -c sluice -f\n";
  for (const CommandEntry* command : flatten(root)) {
    const std::string start = "complete -c sluice -n " + condition(*command);
    for (const CommandEntry& below : command->commands) {
      out += start + " -a " + below.path.back() + " -d " + in_quotes(below.does) + "\n";
    }
    for (const OptionEntry& option : command->flags()) out += option_line(start, option);
    for (const OptionEntry& option : command->positionals()) {
      if (kind_of(option) == ValueKind::file) out += start + " -F\n";
      if (kind_of(option) == ValueKind::command) {
        out += start + " -x -a '(__fish_complete_subcommand)'\n";
      }
    }
  }
  return out;
}

}  // namespace sluice::manual
