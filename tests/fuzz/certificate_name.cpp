// Any bytes as a host name: no certificate, or one that names exactly this host and nothing else.
#include <openssl/x509v3.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "proxy/net/address.h"
#include "proxy/tls/certificate.h"

namespace {

using namespace sluice;

constexpr UtcTime kNow{std::chrono::seconds(1'900'000'000)};

struct Fixture {
  Fixture() {
    auto made = make_authority_certificate(*key, "fuzz", kNow);
    if (!made) std::abort();
    authority = std::move(*made);
  }

  KeyPtr key = make_p256_key();
  CertPtr authority;
};

bool names_only(X509& certificate, const std::string& host) {
  const Owned<GENERAL_NAMES, GENERAL_NAMES_free> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (!names || sk_GENERAL_NAME_num(names.get()) != 1) return false;
  int kind = 0;
  const auto* value = static_cast<const ASN1_STRING*>(
      GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), 0), &kind));
  const std::string bytes(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                          static_cast<std::size_t>(ASN1_STRING_length(value)));
  if (const auto address = parse_ip(host)) {
    return kind == GEN_IPADD &&
           bytes == std::string(reinterpret_cast<const char*>(address->bytes.data()), bytes.size());
  }
  return kind == GEN_DNS && bytes == host;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Fixture fixture;
  const std::string host(reinterpret_cast<const char*>(data), size);
  const auto leaf =
      make_leaf_certificate(*fixture.authority, *fixture.key, *fixture.key, host, kNow);
  if (leaf && !names_only(**leaf, host)) std::abort();
  return 0;
}
