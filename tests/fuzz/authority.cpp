// Any bytes as a CONNECT authority give an error, or a host of 1..253 plain characters and a port
// that spell it again; the same for an absolute URL.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "proxy/http/target.h"
#include "proxy/net/address.h"

namespace {

using namespace sluice;

void require(bool truth) {
  if (!truth) std::abort();
}

void check(const Result<Target>& target) {
  if (!target) return require(!target.error().empty());
  require(!target->host.empty() && target->host.size() <= 253 && target->port != 0);
  const bool ipv6 = target->host.find(':') != std::string::npos;
  require(!ipv6 || parse_ip(target->host));
  for (const char c : target->host) {
    require((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
            (ipv6 && c == ':'));
  }
  for (const char c : target->path) require(c > 0x20 && c < 0x7f && c != '#');
  // Spelled out again it leads to the same place.
  const std::string spelled =
      (ipv6 ? "[" + target->host + "]" : target->host) + ":" + std::to_string(target->port);
  const auto again = parse_authority_form(spelled);
  require(again && again->host == target->host && again->port == target->port);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(parse_authority_form(bytes));
  check(parse_absolute_form(bytes));
  check(parse_absolute_form("http://" + std::string(bytes)));
  return 0;
}
