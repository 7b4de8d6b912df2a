#include "completions.h"

namespace sluice::manual {
namespace {

std::string replaced(std::string_view text, char what, std::string_view with) {
  std::string out;
  for (char c : text) {
    if (c == what) {
      out += with;
    } else {
      out += c;
    }
  }
  return out;
}

// Inside single quotes, and inside the [ ] and : of _arguments.
std::string spec(std::string_view text) {
  std::string out = replaced(text, '\\', "\\\\");
  out = replaced(out, '[', "\\[");
  out = replaced(out, ']', "\\]");
  out = replaced(out, ':', "\\:");
  return replaced(out, '\'', "'\\''");
}

const char* action(ValueKind kind) {
  switch (kind) {
    case ValueKind::file: return "_files";
    case ValueKind::directory: return "_files -/";
    case ValueKind::command: return "_command_names -e";
    default: return " ";
  }
}

std::string function_name(const CommandEntry& command) {
  std::string out = "_sluice";
  for (const std::string& word : command.path) out += "_" + replaced(word, '-', "_");
  return out;
}

std::string arguments(const CommandEntry& command) {
  std::string out;
  for (const OptionEntry& option : command.flags()) {
    for (const std::string& name : option.names) {
      out += " \\\n    '";
      if (option.many) out += "*";
      out += name + (option.value.empty() ? "" : "=") + "[" + spec(option.does) + "]";
      if (!option.value.empty()) {
        out += ":" + spec(option.value) + ":" + action(kind_of(option));
      }
      out += "'";
    }
  }
  if (!command.commands.empty())
    return out + " \\\n    '1:command:->command' '*::argument:->argument'";
  for (const OptionEntry& option : command.positionals()) {
    out += " \\\n    '";
    out += option.many ? "*:" : ":";
    out += spec(option.names.front()) + ":" + action(kind_of(option)) + "'";
  }
  return out;
}

std::string function(const CommandEntry& command) {
  std::string out = function_name(command) + "() {\n";
  out += "  local context state state_descr line\n  typeset -A opt_args\n";
  out += std::string("  _arguments") + (command.commands.empty() ? "" : " -C") +
         arguments(command) + "\n";
  if (!command.commands.empty()) {
    out += "  case $state in\n    command)\n      local -a commands=(\n";
    for (const CommandEntry& below : command.commands) {
      out += "        '" + below.path.back() + ":" + replaced(below.does, '\'', "'\\''") + "'\n";
    }
    out +=
        "      )\n      _describe command commands\n      ;;\n    argument)\n      case $words[1] "
        "in\n";
    for (const CommandEntry& below : command.commands) {
      out += "        " + below.path.back() + ") " + function_name(below) + " ;;\n";
    }
    out += "      esac\n      ;;\n  esac\n";
  }
  return out + "}\n\n";
}

}  // namespace

std::string zsh_completion(const CommandEntry& root) {
  std::string out =
      "#compdef sluice\n# zsh completion for sluice; generated from its command line.\n\n";
  for (const CommandEntry* command : flatten(root)) out += function(*command);
  return out + "_sluice \"$@\"\n";
}

}  // namespace sluice::manual
