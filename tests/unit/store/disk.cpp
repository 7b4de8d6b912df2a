#include "unit/store/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "unit/store/support.h"

namespace sluice::testing {
namespace {

struct PendingWrite {
  std::size_t offset;
  std::string bytes;
};

struct State {
  std::mutex mutex;
  bool watching = false;
  ino_t inode = 0;
  Disk disk;
  std::string durable;
  std::vector<PendingWrite> pending;
  std::mt19937 random;
  std::size_t syncs = 0;
};

State& state() {
  static State the_state;
  return the_state;
}

bool is_watched(int fd) {
  struct stat info {};
  return state().watching && ::fstat(fd, &info) == 0 && info.st_ino == state().inode;
}

void lay(std::string& image, const PendingWrite& write) {
  if (image.size() < write.offset + write.bytes.size())
    image.resize(write.offset + write.bytes.size());
  image.replace(write.offset, write.bytes.size(), write.bytes);
}

void lose_power() {
  State& s = state();
  if (!s.disk.on_power_loss) return;
  std::string image = s.durable;
  for (const PendingWrite& write : s.pending)
    if (s.random() % 2) lay(image, write);
  s.disk.on_power_loss(std::move(image));
}

void settle() {
  for (const PendingWrite& write : state().pending) lay(state().durable, write);
  state().pending.clear();
}

// The error to give, or 0 after noting the write.
int note_write(int fd, std::size_t offset, std::string bytes) {
  State& s = state();
  const bool head = (::fcntl(fd, F_GETFL) & O_DSYNC) != 0;
  if (const int error = head ? s.disk.head_error : s.disk.data_error) return error;
  s.pending.push_back({offset, std::move(bytes)});
  lose_power();
  if (head) settle();
  return 0;
}

ssize_t write_at(int fd, const void* bytes, std::size_t size, off_t offset) {
  {
    const std::lock_guard lock(state().mutex);
    if (is_watched(fd)) {
      if (const int error = note_write(fd, static_cast<std::size_t>(offset),
                                       {static_cast<const char*>(bytes), size})) {
        errno = error;
        return -1;
      }
    }
  }
  return ::syscall(SYS_pwrite64, fd, bytes, size, offset);
}

}  // namespace

WatchedDisk::WatchedDisk(const std::string& path, std::uint32_t seed) {
  const std::lock_guard lock(state().mutex);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) std::abort();
  state().inode = info.st_ino;
  state().durable = slurp(path);
  state().pending.clear();
  state().syncs = 0;
  state().random.seed(seed);
  state().disk = {};
  state().watching = true;
}

WatchedDisk::~WatchedDisk() {
  const std::lock_guard lock(state().mutex);
  state().watching = false;
  state().disk = {};
}

void WatchedDisk::set(Disk disk) {
  const std::lock_guard lock(state().mutex);
  state().disk = std::move(disk);
}

std::size_t WatchedDisk::syncs() const {
  const std::lock_guard lock(state().mutex);
  return state().syncs;
}

}  // namespace sluice::testing

using namespace sluice::testing;

// The executable's own definitions come before the C library's, for liblmdb too.
extern "C" {

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return write_at(fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return write_at(fd, bytes, size, offset);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  {
    const std::lock_guard lock(state().mutex);
    if (is_watched(fd)) {
      std::string bytes;
      for (int i = 0; i < count; ++i)
        bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
      const off_t offset = ::lseek(fd, 0, SEEK_CUR);
      if (const int error = note_write(fd, static_cast<size_t>(offset), std::move(bytes))) {
        errno = error;
        return -1;
      }
    }
  }
  return ::syscall(SYS_writev, fd, parts, count);
}

int fdatasync(int fd) {
  {
    const std::lock_guard lock(state().mutex);
    if (is_watched(fd)) {
      if (state().disk.sync_error) {
        errno = state().disk.sync_error;
        return -1;
      }
      lose_power();
      settle();
      ++state().syncs;
    }
  }
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
}
