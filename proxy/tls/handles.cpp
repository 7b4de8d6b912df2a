#include "proxy/tls/handles.h"

#include <openssl/ec.h>
#include <openssl/err.h>

#include <cstdlib>

namespace sluice {

std::string take_openssl_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unknown TLS error";
}

KeyPtr make_p256_key() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) std::abort();
  return key;
}

}  // namespace sluice
