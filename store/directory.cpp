#include "store/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

namespace sluice {
namespace {

void sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

bool make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) == 0) {
      const std::size_t slash = part.rfind('/');
      sync_directory(slash == std::string::npos ? "." : part.substr(0, slash + 1));
    } else if (errno != EEXIST && errno != EISDIR) {
      const int why = errno;
      struct stat info {};
      if (::stat(part.c_str(), &info) != 0) {  // a read-only parent that exists is fine
        errno = why;
        return false;
      }
    }
    if (end == std::string::npos) return true;
  }
}

std::string compact_utc(UtcTime time) {
  using namespace std::chrono;
  const sys_seconds at{floor<seconds>(time.time_since_epoch())};
  const year_month_day date{floor<days>(at)};
  const hh_mm_ss clock{at - floor<days>(at)};
  char text[64];
  std::snprintf(text, sizeof text, "%04d%02u%02uT%02d%02d%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

}  // namespace

Result<StoreDirectory> StoreDirectory::open(const std::string& path) {
  int fd = -1;
  if (!path.empty() && make_directories(path))
    fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Error{"cannot open the state directory " + path + ": " + std::strerror(errno)};
  return StoreDirectory(path, fd);
}

StoreDirectory::StoreDirectory(StoreDirectory&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

StoreDirectory::~StoreDirectory() {
  if (fd_ >= 0) ::close(fd_);
}

bool StoreDirectory::lock_alone() { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0; }

void StoreDirectory::share() {
  while (::flock(fd_, LOCK_SH) != 0 && errno == EINTR) {}
}

Result<std::string> StoreDirectory::set_aside(const std::string& name, UtcTime now) {
  const std::string wanted = file(name) + ".damaged-" + compact_utc(now);
  for (int n = 1; n < 1000; ++n) {
    const std::string to = n == 1 ? wanted : wanted + "-" + std::to_string(n);
    // link() and not rename(): it does not replace what an earlier start set aside.
    if (::link(file(name).c_str(), to.c_str()) == 0) {
      ::unlink(file(name).c_str());
      sync();
      return to;
    }
    if (errno != EEXIST) break;
  }
  return Error{"cannot set aside the damaged " + file(name) + ": " + std::strerror(errno)};
}

void StoreDirectory::hand_over(const std::string& name) {
  struct stat folder {
  }, made{};
  if (::geteuid() != 0 || ::fstat(fd_, &folder) != 0 || folder.st_uid == 0) return;
  // O_PATH: closing any other kind would give up this process's locks on the file.
  const int fd = ::openat(fd_, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  if (::fstat(fd, &made) == 0 && made.st_uid == 0) [[maybe_unused]]
    const int told = ::fchownat(fd, "", folder.st_uid, folder.st_gid, AT_EMPTY_PATH);
  ::close(fd);
}

void StoreDirectory::sync() { ::fsync(fd_); }

}  // namespace sluice
