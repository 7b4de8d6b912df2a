#include "proxy/stop_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "policy/classify.h"

namespace sluice {
namespace {

std::string stop_path(const std::string& directory) { return directory + "/" + kStopFileName; }

Error system_error(const std::string& what) { return Error{what + ": " + std::strerror(errno)}; }

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// After this, a name made or removed in the directory stays so after a power loss.
void sync_directory(const std::string& directory) {
  const File opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened) ::fsync(opened.fd());
}

// True: all of it is on the disk. None: there is no such file, and errno says why.
std::optional<bool> write_line(const std::string& path, const std::string& line) {
  const File file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file) return std::nullopt;
  const bool whole =
      ::write(file.fd(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const bool kept = ::fsync(file.fd()) == 0;
  return whole && kept;
}

}  // namespace

Result<bool> write_stop_file(const std::string& directory, const std::string& reason) {
  const std::string path = stop_path(directory);
  if (reason.empty()) {  // a second order does not take the reason of the first one away
    const auto there = read_stop_file(directory);
    if (there && *there && !(*there)->empty()) return true;
  }
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return Error{directory + " cannot be made: " + failed.message()};
  const std::string line = printable(reason, kMaxStopReason) + "\n";
  // Whoever sees the file is to see its reason; but on a full disk an empty file stops everything,
  // too.
  const std::string draft = path + ".new";
  bool kept = write_line(draft, line).value_or(false) && ::rename(draft.c_str(), path.c_str()) == 0;
  if (!kept) {
    ::unlink(draft.c_str());
    const auto written = write_line(path, line);
    if (!written) return system_error(path + " cannot be written");
    kept = *written;
  }
  sync_directory(directory);
  return kept;
}

Result<bool> remove_stop_file(const std::string& directory) {
  const std::string path = stop_path(directory);
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return system_error(path + " cannot be removed");
  }
  sync_directory(directory);
  return true;
}

Result<std::optional<std::string>> read_stop_file(const std::string& directory) {
  const std::string path = stop_path(directory);
  struct stat info;
  // Not what a link points to: the name alone is the stop.
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::string>();
    return system_error(path + " cannot be looked at");
  }
  std::string reason(kMaxStopReason, '\0');
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  const ssize_t count =
      S_ISREG(info.st_mode) && file ? ::read(file.fd(), reason.data(), reason.size()) : 0;
  reason.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  reason.resize(std::min(reason.size(), reason.find('\n')));
  return std::optional<std::string>(printable(reason, kMaxStopReason));
}

}  // namespace sluice
