#include "proxy/governor/credential.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "store/blocking.h"

namespace sluice {
namespace {

constexpr std::string_view kSaltKey = "meta/salt";
constexpr std::size_t kSaltSize = 32;

std::string hex(const unsigned char* bytes, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += "0123456789abcdef"[bytes[i] >> 4];
    out += "0123456789abcdef"[bytes[i] & 15];
  }
  return out;
}

}  // namespace

std::string credential_hash(std::string_view salt, const std::vector<std::string>& headers,
                            const Head& request) {
  std::string text;
  for (const std::string& name : headers) {
    for (const Field& field : request.fields) {
      if (!equals_ignoring_case(field.name, name)) continue;
      text.append(name).append(1, '\0').append(field.value).append(1, '\0');
    }
  }
  if (text.empty()) return {};
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), salt.data(), static_cast<int>(salt.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  return hex(digest, 8);
}

std::string load_salt(Store& store) {
  unsigned char fresh[kSaltSize];
  RAND_bytes(fresh, sizeof fresh);
  const std::string made(reinterpret_cast<char*>(fresh), sizeof fresh);
  auto known = store.get(kSaltKey);
  if (known && !known->value) {
    [[maybe_unused]] const auto put = wait_for([&](Completion done) {
      store.compare_and_set(std::string(kSaltKey), std::nullopt, made, std::move(done));
    });
    known = store.get(kSaltKey);
  }
  return known && known->value ? *known->value : made;
}

}  // namespace sluice
