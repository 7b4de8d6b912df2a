#include "proxy/tls/origin_side.h"

#include <openssl/x509v3.h>

#include "proxy/net/address.h"
#include "proxy/tls/file_stamp.h"

namespace sluice {

namespace {

constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

// What a session needs to find its way into the worker's memory.
struct Place {
  OriginSessions* sessions;
  std::string key;
};

int place_index() {
  static const int index = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* place, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<Place*>(place);
      });
  return index;
}

Result<SslContextPtr> make_context(const std::string& extra_ca, const TlsIdentity& identity);

}  // namespace

// OpenSSL asks whether its reference was taken over: 1 means yes.
int keep_session(SSL* ssl, SSL_SESSION* session) {
  const auto* place = static_cast<const Place*>(SSL_get_ex_data(ssl, place_index()));
  if (place == nullptr) return 0;
  place->sessions->keep(place->key, SslSessionPtr(session));
  return 1;
}

namespace {

// A CA of which no list was given is not asked for one; one whose list is out of date is.
int without_missing_lists(int good, X509_STORE_CTX* store) {
  if (good == 1 || X509_STORE_CTX_get_error(store) != X509_V_ERR_UNABLE_TO_GET_CRL) return good;
  X509_STORE_CTX_set_error(store, X509_V_OK);
  return 1;
}

// RFC 5280 §5: lists of revoked certificates, where the files of extra_ca hold any.
void heed_revocations(SSL_CTX* context) {
  const STACK_OF(X509_OBJECT)* objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    if (X509_OBJECT_get_type(sk_X509_OBJECT_value(objects, i)) != X509_LU_CRL) continue;
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context),
                                X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, without_missing_lists);
    return;
  }
}

// OpenSSL would ask at the terminal, and a daemon has nobody there.
int tell_no_pass_phrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

// Empty: it is in use.
std::string key_problem(SSL_CTX* context, const std::string& file) {
  bool asked = false;
  SSL_CTX_set_default_passwd_cb(context, tell_no_pass_phrase);
  SSL_CTX_set_default_passwd_cb_userdata(context, &asked);
  const bool used = SSL_CTX_use_PrivateKey_file(context, file.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  if (used) return {};
  const std::string why = take_openssl_error();
  return asked ? "it is encrypted, and there is nobody to ask for its pass phrase" : why;
}

Result<SslContextPtr> make_context(const std::string& extra_ca, const TlsIdentity& identity) {
  SslContextPtr made(SSL_CTX_new(TLS_client_method()));
  if (!made) return Error{take_openssl_error()};
  SSL_CTX* context = made.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keep_session);
  SSL_CTX_set_alpn_protos(context, kHttp11, sizeof kHttp11);
  SSL_CTX_set_default_verify_paths(context);
  for (const std::string& file : {extra_ca, identity.extra_ca}) {
    if (file.empty()) continue;
    if (SSL_CTX_load_verify_file(context, file.c_str()) != 1) {
      return Error{"extra_ca " + file + " cannot be used: " + take_openssl_error()};
    }
  }
  heed_revocations(context);
  if (!identity.client_cert.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context, identity.client_cert.c_str()) != 1) {
      return Error{"client_cert " + identity.client_cert +
                   " cannot be used: " + take_openssl_error()};
    }
    if (const auto problem = key_problem(context, identity.client_key); !problem.empty()) {
      return Error{"client_key " + identity.client_key + " cannot be used: " + problem};
    }
  }
  return made;
}

}  // namespace

std::string OriginSide::stamp(const TlsIdentity& identity) const {
  std::string out;
  for (const std::string* file :
       {&extra_ca_, &identity.extra_ca, &identity.client_cert, &identity.client_key}) {
    if (!file->empty()) out += file_stamp(*file) + " ";
  }
  return out;
}

// A failure is remembered as well: files that cannot be used are not read for each request.
Result<OriginContextRef> OriginSide::make(const TlsIdentity& identity) {
  std::string seen = stamp(identity);
  auto made = make_context(extra_ca_, identity);
  const std::lock_guard lock(mutex_);
  auto context = made ? Result<OriginContextRef>(std::make_shared<OriginContext>(
                            OriginContext{std::move(*made), "tls" + std::to_string(made_++)}))
                      : Result<OriginContextRef>(Error{made.error()});
  contexts_.insert_or_assign(identity, Kept{context, std::move(seen)});
  return context;
}

Result<OriginContextRef> OriginSide::context(const TlsIdentity& identity) {
  {
    const std::lock_guard lock(mutex_);
    const auto kept = contexts_.find(identity);
    if (kept != contexts_.end()) return kept->second.context;
  }
  return make(identity);
}

void OriginSide::prepare(const std::vector<TlsIdentity>& identities) {
  for (const TlsIdentity& identity : identities) {
    [[maybe_unused]] const auto known = context(identity);
  }
}

void OriginSide::look_again() {
  std::vector<std::pair<TlsIdentity, std::string>> known;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [identity, kept] : contexts_) known.emplace_back(identity, kept.stamp);
  }
  for (const auto& [identity, seen] : known) {
    if (stamp(identity) == seen) continue;
    [[maybe_unused]] const auto made = make(identity);
  }
}

SslPtr OriginSessions::connect(const OriginContext& context, const std::string& key,
                               const std::string& host) {
  SslPtr ssl(SSL_new(context.ssl.get()));
  if (!ssl) return nullptr;
  SSL_set_ex_data(ssl.get(), place_index(), new Place{this, key});
  SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (parse_ip(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str());
  } else {
    SSL_set1_host(ssl.get(), host.c_str());
    SSL_set_tlsext_host_name(ssl.get(), host.c_str());  // RFC 6066 §3: names only
  }
  if (const auto last = by_key_.find(key); last != by_key_.end()) {
    SSL_set_session(ssl.get(), last->second.session.get());
  }
  SSL_set_connect_state(ssl.get());
  return ssl;
}

void OriginSessions::keep(const std::string& key, SslSessionPtr session) {
  if (const auto old = by_key_.find(key); old != by_key_.end()) {
    old->second.session = std::move(session);
    oldest_last_.splice(oldest_last_.begin(), oldest_last_, old->second.age);
    return;
  }
  if (by_key_.size() >= capacity_) {
    by_key_.erase(oldest_last_.back());
    oldest_last_.pop_back();
  }
  oldest_last_.push_front(key);
  by_key_[key] = {std::move(session), oldest_last_.begin()};
}

}  // namespace sluice
