#include "proxy/admin/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace sluice {
namespace {

constexpr int kBacklog = 64;

// The name of a path as an address. What does not fit is reached through a descriptor of its
// folder, which must stay open while the address is used.
struct Named {
  sockaddr_un address{};
  OwnedSocket folder;
  bool ok = false;
};

Named named(const std::string& path) {
  Named out;
  out.address.sun_family = AF_UNIX;
  std::string text = path;
  if (text.size() >= sizeof out.address.sun_path) {
    const std::filesystem::path whole(path);
    out.folder = OwnedSocket(::open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!out.folder) return out;
    text = "/proc/self/fd/" + std::to_string(out.folder.get()) + "/" + whole.filename().string();
  }
  if (text.size() >= sizeof out.address.sun_path) {
    errno = ENAMETOOLONG;
    return out;
  }
  std::memcpy(out.address.sun_path, text.c_str(), text.size() + 1);
  out.ok = true;
  return out;
}

const sockaddr* generic(const Named& name) {
  return reinterpret_cast<const sockaddr*>(&name.address);
}

OwnedSocket make_socket(int flags) {
  return OwnedSocket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

Error failure(const std::string& what, const std::string& path) {
  return {what + " " + path + ": " + std::strerror(errno)};
}

}  // namespace

Result<OwnedSocket> connect_unix(const std::string& path) {
  const Named name = named(path);
  OwnedSocket socket = make_socket(0);
  // Whoever listens there may hang, with as many as can waiting already.
  const timeval patience{1, 0};
  if (socket) setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (!name.ok || !socket || connect(socket.get(), generic(name), sizeof name.address) != 0)
    return failure("cannot connect to", path);
  return socket;
}

Result<UnixListener> UnixListener::make(const std::string& path) {
  if (connect_unix(path))
    return Error{path + " belongs to another running Sluice: this one has no unix socket"};
  const std::string draft = path + "." + std::to_string(getpid());
  unlink(draft.c_str());
  const Named name = named(draft);
  OwnedSocket socket = make_socket(SOCK_NONBLOCK);
  struct stat about {};
  // Nobody can connect before listen(), and by then it is the owner's alone.
  const bool made =
      name.ok && socket && bind(socket.get(), generic(name), sizeof name.address) == 0 &&
      chmod(draft.c_str(), 0600) == 0 && stat(draft.c_str(), &about) == 0 &&
      listen(socket.get(), kBacklog) == 0 && std::rename(draft.c_str(), path.c_str()) == 0;
  if (!made) {
    const Error why = failure("cannot listen on", path);
    unlink(draft.c_str());
    return why;
  }
  return UnixListener(path, std::move(socket), about.st_ino);
}

UnixListener::UnixListener(UnixListener&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      socket_(std::move(other.socket_)),
      inode_(other.inode_) {}

UnixListener::~UnixListener() {
  struct stat about {};
  if (!path_.empty() && stat(path_.c_str(), &about) == 0 && about.st_ino == inode_)
    unlink(path_.c_str());
}

}  // namespace sluice
