// Everything that TLS needs besides a connection, made once and shared by all workers. Each part
// says for itself that any thread may call it.
#pragma once

#include <string>

#include "proxy/clock.h"
#include "proxy/config.h"
#include "proxy/tls/client_side.h"
#include "proxy/tls/distrust.h"
#include "proxy/tls/mint.h"
#include "proxy/tls/origin_side.h"

namespace sluice {

struct Interception {
  Interception(const TlsConfig& config, const std::string& state_directory)
      : mint(authority_files(config, state_directory), utc_now), origins(config.extra_ca) {}

  Mint mint;
  ClientSide clients;
  OriginSide origins;
  Distrust distrust;
};

}  // namespace sluice
