// TLS towards clients: what Sluice offers when it ends a client's session in the origin's name.
// TLS 1.2 and 1.3, HTTP/1.1 only, no renegotiation, no early data; sessions resume by ticket and
// only for the host and port they were made for. One for all workers: any thread may call accept().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/tls/handles.h"
#include "proxy/tls/mint.h"

namespace sluice {

// The name for which a session of ClientSide turned its client away, fit to be printed; empty: it
// was not that.
std::string misdirected_name(const SSL* ssl);

class ClientSide {
 public:
  ClientSide();

  // A session that shows `leaf`. `host` is where CONNECT went: a client that names another one in
  // its hello is turned away.
  SslPtr accept(const Leaf& leaf, std::string_view host, std::uint16_t port) const;

 private:
  SslContextPtr context_;
};

}  // namespace sluice
