// The files that clients need to trust our CA besides the system's: one bundle, and the forms of it
// that some clients insist on. They lie in a directory named after what is in them, below one of
// the owner's, so that what one command was given no other changes. For `sluice env` and `sluice
// exec`.
#pragma once

#include <string>

#include "policy/result.h"
#include "proxy/config_reader.h"

namespace sluice {

struct ClientFiles {
  std::string additions;    // our CA, and what the user had Node or Deno add to their own, PEM
  std::string bundle;       // the system's CAs and ours, PEM
  std::string trust_store;  // the same for Java, JKS
  std::string wgetrc;       // the user's own, and the bundle
  std::string php_ini;      // a directory to scan
  std::string node_shim;
};

Result<ClientFiles> write_client_files(const std::string& directory, const std::string& authority,
                                       const Environment& environment);

// The certificates of a PEM text as a Java key store (JKS, version 2). Pure.
Result<std::string> make_trust_store(const std::string& bundle);

inline constexpr const char* kTrustStorePassword =
    "changeit";  // Java's own custom: it is no secret

}  // namespace sluice
