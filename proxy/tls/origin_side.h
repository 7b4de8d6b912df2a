// TLS towards origins: verified against the system's CAs, those of the configuration and those of
// the policy, and against the host's name. There is no way to switch that off. Contexts are made
// once per set of files and shared by all workers; sessions that can be resumed are kept per
// worker.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/result.h"
#include "proxy/net/host_name.h"
#include "proxy/tls/handles.h"

namespace sluice {

// Which files speak for and against an origin; all may be empty.
struct TlsIdentity {
  std::string extra_ca, client_cert, client_key;
  // NOLINTNEXTLINE(modernize-use-nullptr): it takes the comparison with 0 for a pointer's
  auto operator<=>(const TlsIdentity&) const = default;
};

struct OriginContext {
  SslContextPtr ssl;
  std::string name;  // short, different for different identities: part of a connection's key
};
using OriginContextRef = std::shared_ptr<const OriginContext>;

// Any thread may ask. What was prepared is only looked up: an event loop waits for no file.
class OriginSide {
 public:
  explicit OriginSide(std::string extra_ca) : extra_ca_(std::move(extra_ca)) {}

  // One that nobody has prepared is made here and now.
  Result<OriginContextRef> context(const TlsIdentity& identity);

  // These read files, on whatever thread can wait for them.
  void prepare(const std::vector<TlsIdentity>& identities);
  void look_again();  // at the files of all that is known: what has changed is made anew

 private:
  struct Kept {
    Result<OriginContextRef> context;
    std::string stamp;  // when the files were changed
  };

  std::string stamp(const TlsIdentity& identity) const;
  Result<OriginContextRef> make(const TlsIdentity& identity);

  const std::string extra_ca_;
  std::mutex mutex_;  // guards what follows; never held while a file is read
  std::map<TlsIdentity, Kept> contexts_;
  unsigned made_ = 0;
};

// The sessions of one worker: the last one of each place, up to a bound.
class OriginSessions {
 public:
  explicit OriginSessions(std::size_t capacity = 1024) : capacity_(capacity) {}

  // A session to be, that resumes the last one with the same `key` if there is one. `host` is a
  // name or an address without brackets. The sessions must outlive it.
  SslPtr connect(const OriginContext& context, const std::string& key, const std::string& host);
  std::size_t size() const { return by_key_.size(); }

 private:
  friend int keep_session(SSL* ssl, SSL_SESSION* session);
  struct Kept {
    SslSessionPtr session;
    std::list<std::string>::iterator age;
  };

  void keep(const std::string& key, SslSessionPtr session);

  const std::size_t capacity_;
  NameMap<Kept> by_key_;
  std::list<std::string> oldest_last_;
};

}  // namespace sluice
