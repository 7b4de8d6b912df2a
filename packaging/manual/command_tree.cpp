#include "command_tree.h"

#include <algorithm>

namespace sluice::manual {
namespace {

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry out;
  out.positional = !option.nonpositional();
  if (out.positional) {
    out.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) out.value = option.get_type_name();
  out.does = option.get_description();
  out.required = option.get_required();
  out.many = option.get_items_expected_max() > 1 ||
             option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  return out;
}

void add(const CLI::App& app, CommandEntry& to) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) to.options.push_back(entry_of(*option));
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (below->get_name().empty()) {  // an option group
      add(*below, to);
    } else if (!below->get_group().empty()) {
      CommandEntry command;
      command.path = to.path;
      command.path.push_back(below->get_name());
      command.does = below->get_description();
      command.footer = below->get_footer();
      add(*below, command);
      to.commands.push_back(std::move(command));
    }
  }
}

std::vector<OptionEntry> chosen(const std::vector<OptionEntry>& options, bool positional) {
  std::vector<OptionEntry> out;
  std::copy_if(options.begin(), options.end(), std::back_inserter(out),
               [&](const OptionEntry& option) { return option.positional == positional; });
  return out;
}

}  // namespace

std::string CommandEntry::name() const {
  std::string out;
  for (const std::string& word : path) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::vector<OptionEntry> CommandEntry::flags() const { return chosen(options, false); }
std::vector<OptionEntry> CommandEntry::positionals() const { return chosen(options, true); }

CommandEntry command_tree(const CLI::App& app) {
  CommandEntry root;
  root.does = app.get_description();
  root.footer = app.get_footer();
  add(app, root);
  return root;
}

ValueKind kind_of(const OptionEntry& option) {
  if (option.value.empty()) return ValueKind::none;
  if (option.value == "FILE") return ValueKind::file;
  if (option.value == "DIR" || option.value == "DIRECTORY") return ValueKind::directory;
  if (option.value == "CMD" || option.value == "COMMAND") return ValueKind::command;
  return ValueKind::other;
}

std::vector<const CommandEntry*> flatten(const CommandEntry& root) {
  std::vector<const CommandEntry*> out{&root};
  for (const CommandEntry& below : root.commands) {
    for (const CommandEntry* command : flatten(below)) out.push_back(command);
  }
  return out;
}

}  // namespace sluice::manual
