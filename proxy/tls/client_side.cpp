#include "proxy/tls/client_side.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "proxy/http/field.h"

namespace sluice {
namespace {

constexpr long kSessionLife = 2 * 60 * 60;  // seconds
constexpr std::string_view kHttp11 = "http/1.1";

// RFC 7301 §3.2: no overlap is a fatal alert. A client that offers nothing speaks HTTP/1.1.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned size, void*) {
  for (unsigned at = 0; at < size; at += 1u + offered[at]) {
    const std::string_view name(reinterpret_cast<const char*>(offered + at + 1), offered[at]);
    if (name != kHttp11) continue;
    *out = offered + at + 1;
    *out_size = offered[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// The host that CONNECT named, with the session for as long as it lives.
int host_index() {
  static const int index = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* host, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<std::string*>(host);
      });
  return index;
}

// RFC 6066 §3: the name is a DNS name without a final dot. A client that connects to an address
// sends none.
std::string_view name_in_hello(const SSL* ssl) {
  const char* sent = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  std::string_view name = sent == nullptr ? "" : sent;
  if (name.ends_with('.')) name.remove_suffix(1);
  return name;
}

bool is_misdirected(const SSL* ssl) {
  const std::string_view name = name_in_hello(ssl);
  const auto& host = *static_cast<const std::string*>(SSL_get_ex_data(ssl, host_index()));
  return !name.empty() && !equals_ignoring_case(name, host);
}

int check_name(SSL* ssl, int* alert, void*) {
  if (!is_misdirected(ssl)) {
    return name_in_hello(ssl).empty() ? SSL_TLSEXT_ERR_NOACK : SSL_TLSEXT_ERR_OK;
  }
  *alert = SSL_AD_UNRECOGNIZED_NAME;
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

}  // namespace

ClientSide::ClientSide() : context_(SSL_CTX_new(TLS_server_method())) {
  SSL_CTX* context = context_.get();
  if (context == nullptr) std::abort();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_early_data(context, 0);
  // Tickets hold the session, so nothing is kept here.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_timeout(context, kSessionLife);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  SSL_CTX_set_tlsext_servername_callback(context, check_name);
}

std::string misdirected_name(const SSL* ssl) {
  if (!is_misdirected(ssl)) return {};
  std::string name(name_in_hello(ssl));
  const auto odd = [](char c) { return c <= ' ' || c > '~'; };
  std::replace_if(name.begin(), name.end(), odd, '?');
  return name;
}

SslPtr ClientSide::accept(const Leaf& leaf, std::string_view host, std::uint16_t port) const {
  SslPtr ssl(SSL_new(context_.get()));
  if (!ssl) std::abort();
  SSL_set_ex_data(ssl.get(), host_index(), new std::string(host));
  const std::string place = std::string(host) + ':' + std::to_string(port);
  unsigned char id[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(place.data()), place.size(), id);
  static_assert(sizeof id <= SSL_MAX_SID_CTX_LENGTH);
  SSL_set_session_id_context(ssl.get(), id, sizeof id);
  SSL_use_certificate(ssl.get(), leaf.certificate.get());
  SSL_use_PrivateKey(ssl.get(), leaf.key);
  if (leaf.chain) {
    for (const CertPtr& above : *leaf.chain) SSL_add1_chain_cert(ssl.get(), above.get());
  }
  SSL_set_accept_state(ssl.get());
  return ssl;
}

}  // namespace sluice
