// Builds the two kinds of certificate that Sluice signs: its own CA and the leaves that intercepted
// clients see. Pure but for the random serial: keys and times are passed in, nothing is read or
// written. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "policy/result.h"
#include "policy/time.h"
#include "proxy/tls/handles.h"

namespace sluice {

inline constexpr Duration kAuthorityLife = std::chrono::days(3650);
inline constexpr Duration kLeafLife = std::chrono::days(3);
// Clients whose clock is slow must not see a certificate from the future.
inline constexpr Duration kBackdated = std::chrono::hours(24);

Result<CertPtr> make_authority_certificate(EVP_PKEY& key, const std::string& machine, UtcTime now);

// For one host: a name, or an IP address without brackets. Valid within the CA's own life only.
Result<CertPtr> make_leaf_certificate(X509& authority, EVP_PKEY& authority_key, EVP_PKEY& leaf_key,
                                      std::string_view host, UtcTime now);

UtcTime not_before(const X509& certificate);
UtcTime not_after(const X509& certificate);
bool is_valid(const X509& certificate, UtcTime now);

}  // namespace sluice
