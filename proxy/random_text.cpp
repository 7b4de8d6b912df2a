#include "proxy/random_text.h"

#include <openssl/rand.h>

#include <cstdlib>
#include <vector>

namespace sluice {

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  if (RAND_bytes(raw.data(), static_cast<int>(raw.size())) != 1) std::abort();
  std::string text;
  for (const unsigned char byte : raw)
    text += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
  return text;
}

}  // namespace sluice
