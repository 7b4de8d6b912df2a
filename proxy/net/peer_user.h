// Who is at the other end of a TCP connection on this machine. The kernel is asked for that one
// connection (sock_diag(7)) or, where it cannot be, for the list of all of them: for a command's
// own process, not for an event loop.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "proxy/net/address.h"

namespace sluice {

// The user whose socket `peer` is, of a connection to `own`; both IPv4, though the socket may be
// one for IPv6 as well (Java's are). None: there is no such socket, or nobody holds it any more.
std::optional<uid_t> peer_user(const Address& peer, const Address& own);

// The same, from the list.
std::optional<uid_t> listed_peer_user(const Address& peer, const Address& own);
// The same, from the text of /proc/net/tcp or tcp6. Pure.
std::optional<uid_t> find_peer_user(std::string_view table, const Address& peer,
                                    const Address& own);

}  // namespace sluice
