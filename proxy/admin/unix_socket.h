// A unix socket by its path: listening on one, and connecting to one. A path may be longer than the
// 107 bytes that a socket address holds. Blocking; start-up and command line only.
#pragma once

#include <sys/types.h>

#include <string>

#include "policy/result.h"
#include "proxy/net/socket.h"

namespace sluice {

// Owns the file: it goes with this, unless another process has put its own there.
class UnixListener {
 public:
  // Open to the owner only from the start. A dead process's file is replaced; a living one's is
  // left alone, and that is an error.
  static Result<UnixListener> make(const std::string& path);

  UnixListener(UnixListener&& other) noexcept;
  UnixListener& operator=(UnixListener&&) = delete;
  ~UnixListener();

  OwnedSocket take() { return std::move(socket_); }

 private:
  UnixListener(std::string path, OwnedSocket socket, ino_t inode)
      : path_(std::move(path)), socket_(std::move(socket)), inode_(inode) {}

  std::string path_;  // empty: moved from
  OwnedSocket socket_;
  ino_t inode_;
};

Result<OwnedSocket> connect_unix(const std::string& path);

}  // namespace sluice
