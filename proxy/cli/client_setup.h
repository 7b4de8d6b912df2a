// What `sluice env` and `sluice exec` share: the CA and the client files, made where they are
// missing, and the variables that name them.
#pragma once

#include "policy/result.h"
#include "proxy/cli/client_environment.h"
#include "proxy/config_reader.h"

namespace sluice {

Result<Variables> prepare_clients(const LoadedConfig& loaded, const ProxyAddress& proxy,
                                  const Environment& environment);

// "127.0.0.1:7878", "[::1]:7878"
ProxyAddress proxy_address(const std::string& text);

}  // namespace sluice
