#include <unistd.h>

#include <string_view>

#include "proxy/cli/command_line.h"

namespace {

sluice::Environment read_environment() {
  sluice::Environment out;
  out.root = geteuid() == 0;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos)
      out.variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) { return sluice::run_command_line(argc, argv, read_environment()); }
