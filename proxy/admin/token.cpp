#include "proxy/admin/token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proxy/net/socket.h"
#include "proxy/random_text.h"

namespace sluice {
namespace {

constexpr std::size_t kBytes = 32;
constexpr std::size_t kShortest = 32, kLongest = 512;  // of a token that somebody else wrote

Error problem(const std::string& path, const std::string& what) { return {path + " " + what}; }

Error failure(const std::string& path, const char* what) {
  return problem(path, std::string(what) + ": " + std::strerror(errno));
}

bool printable(std::string_view text) {
  for (const char c : text)
    if (c <= 0x20 || c >= 0x7f) return false;
  return true;
}

Result<std::string> read_token(int fd, const std::string& path) {
  struct stat about;
  if (fstat(fd, &about) != 0) return failure(path, "cannot be looked at");
  if (!S_ISREG(about.st_mode)) return problem(path, "is not a file");
  if (about.st_uid != geteuid() && about.st_uid != 0)
    return problem(path, "belongs to somebody else");
  if ((about.st_mode & 077) != 0)
    return problem(path, "can be read by others: chmod 600 it, or remove it for a new one");
  std::string text(kLongest + 2, '\0');
  const ssize_t size = read(fd, text.data(), text.size());
  if (size < 0) return failure(path, "cannot be read");
  text.resize(static_cast<std::size_t>(size));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() < kShortest || text.size() > kLongest || !printable(text))
    return problem(path,
                   "holds no token: 32 or more printable characters; remove it for a new one");
  return text;
}

// Complete under another name first, so that nobody ever reads half a token.
Result<std::string> make_token(const std::string& path) {
  const std::string text = random_hex(kBytes);
  std::string draft = path + ".XXXXXX";
  const OwnedSocket file(mkostemp(draft.data(), O_CLOEXEC));  // for the owner only
  if (!file) return failure(path, "cannot be made");
  const std::string line = text + "\n";
  const bool written =
      write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
      fsync(file.get()) == 0;
  // A link fails where another process was quicker: its token counts.
  const bool linked = written && link(draft.c_str(), path.c_str()) == 0;
  const int why = errno;
  unlink(draft.c_str());
  errno = why;
  if (linked) return text;
  if (written && why == EEXIST) return std::string();
  return failure(path, "cannot be made");
}

}  // namespace

Result<std::string> read_or_make_token(const std::string& state_directory) {
  const std::string path = state_directory + "/admin.token";
  for (int attempt = 0; attempt < 3; ++attempt) {
    const OwnedSocket file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file) return read_token(file.get(), path);
    if (errno != ENOENT) return failure(path, "cannot be opened");
    auto made = make_token(path);
    if (!made || !made->empty()) return made;
  }
  return problem(path, "comes and goes");
}

}  // namespace sluice
