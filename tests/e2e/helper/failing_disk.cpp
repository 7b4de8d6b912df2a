// A disk that gives EIO, preloaded into a proxy by end-to-end tests: while the directory that
// FAILING_DISK names has a file `write` or `sync`, that fails for every store's data.
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

bool is_data(int fd) {
  std::array<char, 4096> path;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return size > 0 &&
         std::string_view(path.data(), static_cast<std::size_t>(size)).ends_with("/data.mdb");
}

bool fails(const char* what, int fd) {
  const char* const directory = std::getenv("FAILING_DISK");
  if (directory == nullptr || !is_data(fd)) return false;
  const std::string wanted = std::string(directory) + "/" + what;
  if (::access(wanted.c_str(), F_OK) != 0) return false;
  errno = EIO;
  return true;
}

}  // namespace

extern "C" {

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  if (fails("write", fd)) return -1;
  return ::syscall(SYS_pwrite64, fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return pwrite(fd, bytes, size, offset);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  if (fails("write", fd)) return -1;
  return ::syscall(SYS_writev, fd, parts, count);
}

int fdatasync(int fd) {
  if (fails("sync", fd)) return -1;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
}
