// Any bytes as sluice.toml, or as one setting on the command line, give a configuration that keeps
// its bounds, or complaints that name a place in it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "proxy/config_reader.h"
#include "proxy/net/address.h"

namespace {

using namespace sluice;

void require(bool truth) {
  if (!truth) std::abort();
}

void check(const LoadedConfig& loaded) {
  for (const Diagnostic& problem : loaded.problems) {
    require(!problem.message.empty() && problem.line >= 1 && problem.column >= 1);
    for (const char c : render(problem)) {
      require(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
    }
  }
  if (!loaded.problems.empty()) return;
  const ProxyConfig& proxy = loaded.config.proxy;
  require(!proxy.listen.empty() && proxy.max_clients >= 1 && proxy.head_limit >= 1024);
  for (const std::string& listen : proxy.listen) require(parse_address(listen).has_value());
  for (const PortRange& range : proxy.connect_ports) {
    require(range.first >= 1 && range.first <= range.last);
  }
  for (const auto& [name, address] : proxy.resolve) require(!name.empty() && parse_ip(address));
  for (const Duration timeout : {proxy.timeouts.head, proxy.timeouts.idle, proxy.timeouts.connect,
                                 proxy.timeouts.first_byte, proxy.timeouts.transfer_idle}) {
    require(timeout >= 1ms);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(read_config_text(text, "sluice.toml"));
  ConfigFlags flags;
  flags.set = {text};
  flags.listen = text;
  check(load_config(flags, {{{"SLUICE_PROXY_RESOLVE", text}}}));
  return 0;
}
