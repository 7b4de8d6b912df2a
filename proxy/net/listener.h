// Listening sockets: one per worker and address, sharing the port (SO_REUSEPORT) so that the kernel
// spreads the clients and no worker wakes another. Or those that the service manager holds for us:
// each worker gets a descriptor of the same socket, so that its queue outlives a restart.
#pragma once

#include <string_view>
#include <vector>

#include "policy/result.h"
#include "proxy/net/address.h"
#include "proxy/net/socket.h"

namespace sluice {

struct Listening {
  Address address;                   // with the port that was given when 0 was asked for
  std::vector<OwnedSocket> sockets;  // one per worker
};

// Fails when anybody listens there already, though SO_REUSEPORT would let us join in. `flag`: what
// would choose another address.
Result<Listening> listen_on(const Address& address, unsigned workers,
                            std::string_view flag = "--listen");

// What was passed to this process by sd_listen_fds(3); nothing when it was not socket-activated.
// Takes them over: a second call finds none.
Result<std::vector<Listening>> inherited_listeners(unsigned workers);

}  // namespace sluice
