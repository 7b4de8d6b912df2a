#include "proxy/tls/distrust.h"

#include <openssl/ssl.h>

namespace sluice {
namespace {

constexpr Duration kSilence = 1min;
constexpr std::size_t kHosts = 1000;

bool is_about_trust(int alert) {
  return alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_BAD_CERTIFICATE ||
         alert == SSL_AD_CERTIFICATE_UNKNOWN;
}

}  // namespace

Distrust::Explanation Distrust::explain(std::string_view host, int alert, std::string_view error,
                                        Instant now) {
  const bool unknown_ca = is_about_trust(alert);
  const std::string name(host);
  {
    const std::lock_guard lock(mutex_);
    if (said_.size() >= kHosts) said_.clear();
    const auto [place, fresh] = said_.try_emplace((unknown_ca ? "ca " : "other ") + name, now);
    if (!fresh && now - place->second < kSilence) return {};
    place->second = now;
  }
  if (unknown_ca) {
    return {"a client does not trust the CA of this proxy, so it refused the certificate for " +
                name +
                ": run it under `sluice exec`, give it the CA (`sluice ca export`), or write "
                "intercept = false into the policy of " +
                name + " if it only takes the certificates it knows",
            true};
  }
  return {"the TLS handshake with a client for " + name + " failed: " + std::string(error)};
}

}  // namespace sluice
