// At build time: prints one of the documents that are made from the command line itself.
//   sluice_manual man | settings conf/sluice.toml | bash | zsh | fish
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include "command_page.h"
#include "command_tree.h"
#include "completions.h"
#include "proxy/cli/command_line.h"
#include "proxy/config_reader.h"
#include "settings_page.h"

int main(int argc, char** argv) {
  using namespace sluice;
  CLI::App app;
  CommandLine line;
  describe_command_line(app, line);
  const manual::CommandEntry root = manual::command_tree(app);

  const std::string what = argc > 1 ? argv[1] : "";
  const std::map<std::string, std::function<std::string(const manual::CommandEntry&)>> makers = {
      {"man", manual::command_page},
      {"bash", manual::bash_completion},
      {"zsh", manual::zsh_completion},
      {"fish", manual::fish_completion}};
  if (const auto maker = makers.find(what); maker != makers.end()) {
    std::cout << maker->second(root);
    return 0;
  }
  if (what == "settings" && argc == 3) {
    if (const Result<std::string> conf = read_text_file(argv[2])) {
      std::cout << manual::settings_page(*conf);
      return 0;
    }
  }
  std::cerr << "sluice_manual man | settings FILE | bash | zsh | fish\n";
  return 2;
}
