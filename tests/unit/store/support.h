// What store tests need besides a store: folders that go away, and processes that can be killed.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "store/blocking.h"
#include "store/lmdb.h"

namespace sluice::testing {

class TempDirectory {
 public:
  TempDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-store-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string data() const { return path_ + "/data.mdb"; }

 private:
  std::string path_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline const UtcTime kNoon{std::chrono::seconds(1773316800)};  // 2026-03-12T12:00:00Z

inline OpenedStore open_or_die(const std::string& directory, std::size_t map_size = 1 << 24) {
  LmdbOptions options;
  options.directory = directory;
  options.now = kNoon;
  options.map_size = map_size;
  auto opened = LmdbStore::open(options);
  if (!opened) throw std::runtime_error(opened.error());
  return std::move(*opened);
}

inline Result<std::uint64_t> put(Store& store, std::string key, std::string value) {
  return wait_for(
      [&](Completion done) { store.put(std::move(key), std::move(value), std::move(done)); });
}

inline std::string value_of(Store& store, std::string_view key) {
  auto read = store.get(key);
  if (!read) return "(" + read.error() + ")";
  return read->value.value_or("(none)");
}

// Numbers to and from another process.
class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  bool tell(std::uint64_t number) const {
    return ::send(fd_, &number, sizeof number, MSG_NOSIGNAL) == sizeof number;
  }
  // None: the other end is gone.
  std::optional<std::uint64_t> hear() const {
    std::uint64_t number = 0;
    if (::recv(fd_, &number, sizeof number, MSG_WAITALL) != sizeof number) return std::nullopt;
    return number;
  }

 private:
  int fd_;
};

// Counted by any number of processes, and what a killed one has counted stays. Make it first.
class SharedCount {
 public:
  SharedCount()
      : page_(::mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0)) {
    if (page_ == MAP_FAILED) std::abort();
    new (page_) Count{0};
  }
  ~SharedCount() { ::munmap(page_, sizeof(Count)); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;

  void add(std::uint64_t number) { count().fetch_add(number); }
  std::uint64_t get() { return count().load(); }

 private:
  using Count = std::atomic<std::uint64_t>;
  Count& count() { return *static_cast<Count*>(page_); }

  void* page_;
};

// Another process. Start it while this one has no store open: LMDB does not survive a fork.
class Child {
 public:
  static constexpr int kThrew = 97;

  template <class Body>  // int(Line)
  explicit Child(Body body) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ < 0) std::abort();
    if (pid_ == 0) {
      ::close(ends[0]);
      try {
        ::_exit(body(Line(ends[1])));
      } catch (const std::exception& failure) {
        ::dprintf(STDERR_FILENO, "in a child: %s\n", failure.what());
        ::_exit(kThrew);
      }
    }
    ::close(ends[1]);
    fd_ = ends[0];
  }
  ~Child() {
    if (pid_ > 0) kill();
    ::close(fd_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Line line() const { return Line(fd_); }
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  // The exit code; -1: it was killed.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

}  // namespace sluice::testing
