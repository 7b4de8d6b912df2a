// The local CA that signs what intercepted clients see: its certificate and key, from files. The
// key never leaves this machine; a key of ours that others can read is not used, nor one of the
// user's that others can write. Immutable once made, so any thread may sign with it; making and
// loading it waits for the disk.
#pragma once

#include <string>
#include <string_view>

#include "policy/result.h"
#include "policy/time.h"
#include "proxy/config.h"
#include "proxy/tls/handles.h"

namespace sluice {

struct AuthorityFiles {
  std::string certificate, key;
  bool own = true;  // ours in the state directory, so it may be made; else given by the user
};

AuthorityFiles authority_files(const TlsConfig& config, const std::string& state_directory);

class Authority {
 public:
  static Result<Authority> load(const AuthorityFiles& files, UtcTime now);
  // Makes it first where there is none and it is ours. Two processes at once make one.
  static Result<Authority> load_or_make(const AuthorityFiles& files, UtcTime now);
  // Makes another one of ours; the old files stay beside it, as .old.
  static Result<Authority> make_anew(const AuthorityFiles& files, UtcTime now);

  X509& certificate() const { return *certificate_; }
  // What a client needs between a leaf and the root that it trusts: the CA itself and what stands
  // above it in its file, but no root. Empty for a CA that is one.
  const CertChain& chain() const { return chain_; }
  Result<CertPtr> leaf_for(std::string_view host, EVP_PKEY& leaf_key, UtcTime now) const;

 private:
  Authority(CertPtr certificate, KeyPtr key, CertChain chain)
      : certificate_(std::move(certificate)), key_(std::move(key)), chain_(std::move(chain)) {}

  CertPtr certificate_;
  KeyPtr key_;
  CertChain chain_;
};

}  // namespace sluice
