// Opens TCP connections: Happy Eyeballs (RFC 8305) over the addresses of a name, each one judged by
// the filter before a packet leaves. Dialer starts from addresses, Connector from a name.
// Belongs to one worker, like its event_base and Resolver. Completion is always asynchronous: the
// callback comes from the loop, never inside dial() or connect(), whatever connect(2) said.
#pragma once

#include <event2/event.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/time.h"
#include "proxy/access.h"
#include "proxy/net/address.h"
#include "proxy/net/resolver.h"
#include "proxy/net/socket.h"

namespace sluice {

enum class ConnectError : std::uint8_t {
  none,
  bad_name,  // the four of Resolution::Status
  name_not_found,
  name_failed,
  name_timed_out,  // also: the deadline passed before an address was known
  denied,          // every address is refused by the rules
  self,            // the address is our own
  refused,
  unreachable,
  timed_out,
  local,  // our own limits: descriptors, buffers, ports; says nothing about the origin
};

struct Connected {
  OwnedSocket socket;  // non-blocking, close-on-exec, TCP_NODELAY
  Address peer;        // when connected
  ConnectError error = ConnectError::none;
  std::string detail;  // one sentence without a full stop; empty when connected

  explicit operator bool() const { return error == ConnectError::none; }
};

struct DialOptions {
  Duration stagger = 250ms;  // RFC 8305 §5: Connection Attempt Delay
  std::size_t max_addresses = 16;
};

using AddressFilter = std::function<Verdict(const Address&)>;  // given the address with its port
using ConnectCallback = std::function<void(Connected)>;

class Dialing;

// Dropping it cancels: sockets are closed, the callback does not come. May be dropped inside the
// callback. Must not outlive the Dialer or Connector that made it.
class [[nodiscard]] DialHandle {
 public:
  DialHandle();
  explicit DialHandle(std::unique_ptr<Dialing> dialing);
  DialHandle(DialHandle&&) noexcept;
  DialHandle& operator=(DialHandle&&) noexcept;
  ~DialHandle();
  explicit operator bool() const { return dialing_ != nullptr; }

 private:
  std::unique_ptr<Dialing> dialing_;
};

class Dialer {
 public:
  Dialer(event_base* base, AddressFilter filter, DialOptions options = {});

  // The family of the first address is tried first, then the families take turns.
  DialHandle dial(const std::vector<Address>& addresses, std::uint16_t port, Instant deadline,
                  ConnectCallback callback);

 private:
  friend class Dialing;
  event_base* base_;
  AddressFilter filter_;
  DialOptions options_;
};

class Connector {
 public:
  Connector(Resolver& resolver, Dialer& dialer) : resolver_(resolver), dialer_(dialer) {}

  // One deadline for the name and the connection together.
  DialHandle connect(std::string_view host, std::uint16_t port, Instant deadline,
                     ConnectCallback callback);

 private:
  Resolver& resolver_;
  Dialer& dialer_;
};

}  // namespace sluice
