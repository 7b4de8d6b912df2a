#include "completions.h"

namespace sluice::manual {
namespace {

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

std::vector<std::string> names_of(const CommandEntry& command) {
  std::vector<std::string> out;
  for (const CommandEntry& below : command.commands) out.push_back(below.path.back());
  return out;
}

const char* action(ValueKind kind) {
  switch (kind) {
    case ValueKind::file: return "_sluice_files -f";
    case ValueKind::directory: return "_sluice_files -d";
    case ValueKind::command: return "_sluice_words -c";
    default: return ":";
  }
}

// "ca:--out|ca:-o) …;;" for every option with a value.
std::string value_cases(const CommandEntry& root) {
  std::string out;
  for (const CommandEntry* command : flatten(root)) {
    for (const OptionEntry& option : command->flags()) {
      if (option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) {
        patterns.push_back("'" + command->name() + ":" + name + "'");
      }
      out += "    " + join(patterns, " | ") + ") " + action(kind_of(option)) + "; return ;;\n";
    }
  }
  return out;
}

std::string word_cases(const CommandEntry& root) {
  std::string out;
  for (const CommandEntry* command : flatten(root)) {
    std::vector<std::string> options;
    for (const OptionEntry& option : command->flags()) {
      options.insert(options.end(), option.names.begin(), option.names.end());
    }
    out += "    '" + command->name() + "')\n";
    out += "      options='" + join(options, " ") + "'\n";
    out += "      words='" + join(names_of(*command), " ") + "'\n";
    for (const OptionEntry& option : command->positionals()) {
      out += "      argument='" + std::string(action(kind_of(option))) + "'\n";
      break;
    }
    out += "      ;;\n";
  }
  return out;
}

std::string path_cases(const CommandEntry& root) {
  std::vector<std::string> paths;
  for (const CommandEntry* command : flatten(root)) {
    if (!command->path.empty()) paths.push_back("'" + command->name() + "'");
  }
  return join(paths, " | ");
}

}  // namespace

// "=" and ":" break words in bash, so --config=x comes as three of them.
std::string bash_completion(const CommandEntry& root) {
  return "# bash completion for sluice; generated from its command line.\n"
         "_sluice_words() { mapfile -t COMPREPLY < <(compgen \"$@\" -- \"$cur\"); }\n"
         "_sluice_files() {\n"
         "  compopt -o filenames 2>/dev/null\n"
         "  _sluice_words \"$1\"\n"
         "}\n\n"
         "_sluice() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "  local command= next options= words= argument=: i\n"
         "  COMPREPLY=()\n"
         "  [[ $cur == = ]] && cur=\n"
         "  [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
         "      if ((i + 1 == COMP_CWORD)); then _sluice_words -c; else _sluice_files -f; fi\n"
         "      return\n"
         "    fi\n"
         "    next=${command:+$command }${COMP_WORDS[i]}\n"
         "    case $next in\n"
         "      " +
         path_cases(root) +
         ") command=$next ;;\n"
         "    esac\n"
         "  done\n"
         "  case $command:$prev in\n" +
         value_cases(root) +
         "  esac\n"
         "  case $command in\n" +
         word_cases(root) +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    _sluice_words -W \"$options\"\n"
         "  elif [[ -n $words ]]; then\n"
         "    _sluice_words -W \"$words\"\n"
         "  else\n"
         "    eval \"$argument\"\n"
         "  fi\n"
         "}\n"
         "complete -F _sluice sluice\n";
}

}  // namespace sluice::manual
