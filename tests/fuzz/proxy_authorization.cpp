// Any bytes give nothing, or a name of 1..256 and a password of 0..1024 bytes that spell the value.
#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "proxy/proxy_authorization.h"

namespace {

void require(bool truth) {
  if (!truth) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view value(reinterpret_cast<const char*>(data), size);
  const auto found = sluice::parse_basic(value);
  if (!found) return 0;
  require(!found->name.empty() && found->name.size() <= 256 && found->password.size() <= 1024);
  require(found->name.find(':') == std::string::npos);
  for (const char c : found->name + found->password)
    require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  const std::string pair = found->name + ":" + found->password;
  std::string encoded((pair.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                     reinterpret_cast<const unsigned char*>(pair.data()),
                                     static_cast<int>(pair.size()));
  encoded.resize(static_cast<std::size_t>(length));
  require(value.ends_with(" " + encoded));
  return 0;
}
