// The environment variables that point the usual clients at a proxy and let them trust its CA.
// Pure: the files exist already, the environment is passed in.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "proxy/cli/client_files.h"
#include "proxy/config_reader.h"

namespace sluice {

struct ProxyAddress {
  std::string host;  // an address, with brackets if it is IPv6
  std::string port;
  std::string user;  // may be empty; without characters that a URL reserves

  std::string url() const;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

Variables client_environment(const ProxyAddress& proxy, const ClientFiles& files,
                             const Environment& environment);

enum class Shell : std::uint8_t { posix, fish };

// Lines that set them when the shell evaluates them.
std::string shell_lines(const Variables& variables, Shell shell);

}  // namespace sluice
