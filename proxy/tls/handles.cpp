#include "proxy/tls/handles.h"

#include <openssl/ec.h>
#include <openssl/err.h>

#include <cstdlib>
#include <cstring>

namespace sluice {

std::string take_openssl_error() {
  const unsigned long first = ERR_peek_error();
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  // Whoever wanted a file that cannot be read only says "system lib".
  if (ERR_SYSTEM_ERROR(first)) return std::strerror(ERR_GET_REASON(first));
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unknown TLS error";
}

KeyPtr make_p256_key() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) std::abort();
  return key;
}

}  // namespace sluice
