#include "proxy/net/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace sluice {
namespace {

constexpr int kBacklog = 4096;

void set(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

void enable(int fd, int level, int option) { set(fd, level, option, 1); }

// All of it is inherited by accepted sockets. A client that vanished without a word (its power, its
// NAT) is found out within two minutes, also where nothing is due from it for longer.
void prepare_clients(int fd) {
  enable(fd, IPPROTO_TCP, TCP_NODELAY);
  enable(fd, SOL_SOCKET, SO_KEEPALIVE);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);   // seconds
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);  // seconds
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

OwnedSocket bind_to(const Address& address, bool share) {
  sockaddr_storage storage;
  const socklen_t size = address.to_sockaddr(storage);
  OwnedSocket socket(::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  enable(socket.get(), SOL_SOCKET, SO_REUSEADDR);
  if (share) enable(socket.get(), SOL_SOCKET, SO_REUSEPORT);
  if (storage.ss_family == AF_INET6) enable(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY);
  prepare_clients(socket.get());
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0) return {};
  return socket;
}

Address bound_address(int fd) {
  sockaddr_storage storage;
  socklen_t size = sizeof storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  return Address::from_sockaddr(reinterpret_cast<sockaddr*>(&storage), size);
}

Error cannot(const Address& address, std::string_view flag) {
  std::string why = "cannot listen on " + address.text() + ": " + std::strerror(errno);
  if (errno == EADDRINUSE)
    why.append("; is another Sluice running? `").append(flag).append(" A:P` takes another port");
  return {std::move(why)};
}

Result<Listening> take_over(OwnedSocket socket, unsigned workers) {
  const Address address = bound_address(socket.get());
  if (!address || sd_is_socket(socket.get(), AF_UNSPEC, SOCK_STREAM, 1) <= 0) {
    return Error{"descriptor " + std::to_string(socket.get()) +
                 " from the service manager is not a listening TCP socket; see ListenStream= in "
                 "the .socket unit"};
  }
  // Shared by all workers: whoever comes late to accept() must not wait there.
  const int flags = fcntl(socket.get(), F_GETFL);
  fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
  prepare_clients(socket.get());
  Listening listening{address, {}};
  for (unsigned i = 1; i < workers; ++i) {
    listening.sockets.emplace_back(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
    if (!listening.sockets.back()) return cannot(address, "--listen");
  }
  listening.sockets.push_back(std::move(socket));
  return listening;
}

}  // namespace

Result<Listening> listen_on(const Address& address, unsigned workers, std::string_view flag) {
  Listening listening{address, {}};
  {
    const OwnedSocket probe = bind_to(address, false);
    if (!probe) return cannot(address, flag);
    listening.address = bound_address(probe.get());
  }
  for (unsigned i = 0; i < workers; ++i) {
    OwnedSocket socket = bind_to(listening.address, true);
    if (!socket || listen(socket.get(), kBacklog) != 0) return cannot(address, flag);
    listening.sockets.push_back(std::move(socket));
  }
  return listening;
}

Result<std::vector<Listening>> inherited_listeners(unsigned workers) {
  std::vector<OwnedSocket> passed;
  const int count = std::max(0, sd_listen_fds(1));  // and no child of ours takes them for its own
  passed.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) passed.emplace_back(SD_LISTEN_FDS_START + i);
  std::vector<Listening> out;
  for (OwnedSocket& socket : passed) {
    auto listening = take_over(std::move(socket), workers);
    if (!listening) return Error{listening.error()};
    out.push_back(std::move(*listening));
  }
  return out;
}

}  // namespace sluice
