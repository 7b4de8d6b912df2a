// A socket, or any descriptor, that is closed when nobody wants it.
#pragma once

#include <utility>

namespace sluice {

class OwnedSocket {
 public:
  OwnedSocket() = default;
  explicit OwnedSocket(int fd) : fd_(fd) {}
  OwnedSocket(OwnedSocket&& other) noexcept : fd_(other.release()) {}
  OwnedSocket& operator=(OwnedSocket&& other) noexcept;
  ~OwnedSocket();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace sluice
