// OpenSSL's objects as owned values, and its errors as sentences.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "proxy/owned.h"

namespace sluice {

using BioPtr = Owned<BIO, BIO_free>;
using KeyPtr = Owned<EVP_PKEY, EVP_PKEY_free>;
using CertPtr = Owned<X509, X509_free>;
using CertChain = std::shared_ptr<const std::vector<CertPtr>>;
using SslPtr = Owned<SSL, SSL_free>;
using SslContextPtr = Owned<SSL_CTX, SSL_CTX_free>;
using SslSessionPtr = Owned<SSL_SESSION, SSL_SESSION_free>;

// What OpenSSL said last on this thread, which forgets it; never empty.
std::string take_openssl_error();

KeyPtr make_p256_key();  // aborts when there is no randomness: nothing secret could be made

}  // namespace sluice
