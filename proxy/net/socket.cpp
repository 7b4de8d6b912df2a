#include "proxy/net/socket.h"

#include <unistd.h>

namespace sluice {

OwnedSocket& OwnedSocket::operator=(OwnedSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

OwnedSocket::~OwnedSocket() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace sluice
