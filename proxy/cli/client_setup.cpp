#include "proxy/cli/client_setup.h"

#include <filesystem>

#include "proxy/clock.h"
#include "proxy/tls/authority.h"

namespace sluice {

Result<Variables> prepare_clients(const LoadedConfig& loaded, const ProxyAddress& proxy,
                                  const Environment& environment) {
  const AuthorityFiles authority = authority_files(loaded.config.tls, loaded.state_dir);
  if (const auto made = Authority::load_or_make(authority, utc_now()); !made) {
    return Error{made.error()};
  }
  // The clients may run in any directory.
  const std::string directory = std::filesystem::absolute(loaded.state_dir + "/clients");
  const auto files = write_client_files(directory, authority.certificate, environment);
  if (!files) return Error{files.error()};
  return client_environment(proxy, *files, environment);
}

ProxyAddress proxy_address(const std::string& text) {
  const auto colon = text.rfind(':');
  return {text.substr(0, colon), text.substr(colon + 1), {}};
}

}  // namespace sluice
