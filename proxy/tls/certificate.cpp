#include "proxy/tls/certificate.h"

#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

#include "proxy/net/address.h"

namespace sluice {
namespace {

using Asn1Bits = Owned<ASN1_BIT_STRING, ASN1_BIT_STRING_free>;
using Asn1Octets = Owned<ASN1_OCTET_STRING, ASN1_OCTET_STRING_free>;
using GeneralNames = Owned<GENERAL_NAMES, GENERAL_NAMES_free>;
using NamePtr = Owned<X509_NAME, X509_NAME_free>;

constexpr std::size_t kCommonNameLimit = 64;  // RFC 5280 appendix A.1: ub-common-name
constexpr int kSerialBytes = 16;              // RFC 5280 §4.1.2.2 allows 20

time_t seconds(UtcTime time) { return static_cast<time_t>(time.time_since_epoch() / 1s); }

UtcTime from_asn1(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return UtcTime::min();
  return UtcTime(std::chrono::seconds(timegm(&parts)));
}

bool set_serial(X509& certificate) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);  // positive, and never 0
  const Owned<BIGNUM, BN_free> number(BN_bin2bn(bytes, sizeof bytes, nullptr));
  return BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

bool set_common_name(X509_NAME& name, std::string_view text) {
  return X509_NAME_add_entry_by_NID(&name, NID_commonName, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

bool add(X509& certificate, int what, void* value, bool critical) {
  return X509_add1_ext_i2d(&certificate, what, value, critical ? 1 : 0, X509V3_ADD_REPLACE) == 1;
}

bool add_constraints(X509& certificate, bool is_authority) {
  const Owned<BASIC_CONSTRAINTS, BASIC_CONSTRAINTS_free> constraints(BASIC_CONSTRAINTS_new());
  constraints->ca = is_authority ? 0xff : 0;
  if (is_authority) constraints->pathlen = ASN1_INTEGER_new();  // 0: it signs leaves only
  return add(certificate, NID_basic_constraints, constraints.get(), true);
}

// The bits of RFC 5280 §4.2.1.3.
enum UsageBit : int { kDigitalSignature = 0, kKeyCertSign = 5, kCrlSign = 6 };

bool add_usage(X509& certificate, std::initializer_list<UsageBit> usages) {
  const Asn1Bits bits(ASN1_BIT_STRING_new());
  for (const UsageBit usage : usages) ASN1_BIT_STRING_set_bit(bits.get(), usage, 1);
  return add(certificate, NID_key_usage, bits.get(), true);
}

Asn1Octets key_id(const X509& certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  Asn1Octets id(ASN1_OCTET_STRING_new());
  X509_pubkey_digest(&certificate, EVP_sha1(), digest, &size);  // RFC 5280 §4.2.1.2, method 1
  ASN1_OCTET_STRING_set(id.get(), digest, static_cast<int>(size));
  return id;
}

bool add_signer_id(X509& certificate, const X509& authority) {
  const Owned<AUTHORITY_KEYID, AUTHORITY_KEYID_free> id(AUTHORITY_KEYID_new());
  // What the CA calls its own key counts, not what we would have called it.
  const ASN1_OCTET_STRING* named = X509_get0_subject_key_id(const_cast<X509*>(&authority));
  id->keyid = named != nullptr ? ASN1_OCTET_STRING_dup(named) : key_id(authority).release();
  return add(certificate, NID_authority_key_identifier, id.get(), false);
}

// RFC 6125: the name is told here; the common name is for people.
bool add_host(X509& certificate, std::string_view host, bool critical) {
  const GeneralNames names(GENERAL_NAMES_new());
  Owned<GENERAL_NAME, GENERAL_NAME_free> name(GENERAL_NAME_new());
  if (const auto address = parse_ip(host)) {
    ASN1_OCTET_STRING* bytes = ASN1_OCTET_STRING_new();
    ASN1_OCTET_STRING_set(bytes, address->bytes.data(),
                          address->family == Address::Family::v4 ? 4 : 16);
    GENERAL_NAME_set0_value(name.get(), GEN_IPADD, bytes);
  } else {
    ASN1_IA5STRING* text = ASN1_IA5STRING_new();
    ASN1_STRING_set(text, host.data(), static_cast<int>(host.size()));
    GENERAL_NAME_set0_value(name.get(), GEN_DNS, text);
  }
  sk_GENERAL_NAME_push(names.get(), name.release());
  return add(certificate, NID_subject_alt_name, names.get(), critical);
}

bool add_server_usage(X509& certificate) {
  const Owned<EXTENDED_KEY_USAGE, EXTENDED_KEY_USAGE_free> usage(EXTENDED_KEY_USAGE_new());
  sk_ASN1_OBJECT_push(usage.get(), OBJ_nid2obj(NID_server_auth));
  return add(certificate, NID_ext_key_usage, usage.get(), false);
}

bool set_life(X509& certificate, UtcTime from, UtcTime to) {
  return ASN1_TIME_set(X509_getm_notBefore(&certificate), seconds(from)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(&certificate), seconds(to)) != nullptr;
}

bool sign(X509& certificate, EVP_PKEY& key) {
  // RFC 8410: Ed25519 has no separate digest.
  const bool plain = EVP_PKEY_get_base_id(&key) == EVP_PKEY_ED25519;
  return X509_sign(&certificate, &key, plain ? nullptr : EVP_sha256()) > 0;
}

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 253 &&
         std::all_of(host.begin(), host.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

Result<CertPtr> make_authority_certificate(EVP_PKEY& key, const std::string& machine, UtcTime now) {
  CertPtr made(X509_new());
  const NamePtr name(X509_NAME_new());
  const std::string common = "Sluice CA" + (machine.empty() ? "" : " of " + machine);
  const bool good =
      made && X509_set_version(made.get(), X509_VERSION_3) == 1 && set_serial(*made) &&
      set_common_name(*name, common.substr(0, kCommonNameLimit)) &&
      X509_set_subject_name(made.get(), name.get()) == 1 &&
      X509_set_issuer_name(made.get(), name.get()) == 1 &&
      set_life(*made, now - kBackdated, now + kAuthorityLife) &&
      X509_set_pubkey(made.get(), &key) == 1 && add_constraints(*made, true) &&
      add_usage(*made, {kKeyCertSign, kCrlSign}) &&
      add(*made, NID_subject_key_identifier, key_id(*made).get(), false) && sign(*made, key);
  if (!good) return Error{"the CA certificate could not be made: " + take_openssl_error()};
  return made;
}

Result<CertPtr> make_leaf_certificate(X509& authority, EVP_PKEY& authority_key, EVP_PKEY& leaf_key,
                                      std::string_view host, UtcTime now) {
  if (!is_host(host)) return Error{"no certificate can be made for such a host name"};
  const UtcTime from = std::max(now - kBackdated, not_before(authority));
  const UtcTime to = std::min(now + kLeafLife, not_after(authority));
  if (to <= now) return Error{"the CA has expired"};
  CertPtr made(X509_new());
  const NamePtr name(X509_NAME_new());
  const bool named = host.size() <= kCommonNameLimit;
  const bool good = made && X509_set_version(made.get(), X509_VERSION_3) == 1 &&
                    set_serial(*made) && (!named || set_common_name(*name, host)) &&
                    X509_set_subject_name(made.get(), name.get()) == 1 &&
                    X509_set_issuer_name(made.get(), X509_get_subject_name(&authority)) == 1 &&
                    set_life(*made, from, to) && X509_set_pubkey(made.get(), &leaf_key) == 1 &&
                    add_constraints(*made, false) && add_usage(*made, {kDigitalSignature}) &&
                    add_server_usage(*made) &&
                    // RFC 5280 §4.2.1.6: critical when the subject says nothing.
                    add_host(*made, host, !named) && add_signer_id(*made, authority) &&
                    sign(*made, authority_key);
  if (!good) return Error{"no certificate could be made: " + take_openssl_error()};
  return made;
}

UtcTime not_before(const X509& certificate) { return from_asn1(X509_get0_notBefore(&certificate)); }
UtcTime not_after(const X509& certificate) { return from_asn1(X509_get0_notAfter(&certificate)); }
bool is_valid(const X509& certificate, UtcTime now) {
  return not_before(certificate) <= now && now < not_after(certificate);
}

}  // namespace sluice
