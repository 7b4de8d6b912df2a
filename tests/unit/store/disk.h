// A disk that can fail and lose its power. Stands between LMDB and the kernel by defining the calls
// that LMDB writes with; acts only on the one file that is watched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace sluice::testing {

struct Disk {
  // Errors to give, as errno; 0: none.
  int data_error = 0;  // writing pages
  int sync_error = 0;  // making them durable
  int head_error = 0;  // writing the head that a commit ends with
  // Called at every write and sync with what a power loss at this moment could leave of the file:
  // all that was synced, and any part of what was not. On the thread that writes.
  std::function<void(std::string image)> on_power_loss{};
};

// Until the end of its life, `path` is on this disk. It must exist. One at a time.
class WatchedDisk {
 public:
  explicit WatchedDisk(const std::string& path, std::uint32_t seed = 1);
  ~WatchedDisk();
  WatchedDisk(const WatchedDisk&) = delete;
  WatchedDisk& operator=(const WatchedDisk&) = delete;

  void set(Disk disk);
  std::size_t syncs() const;  // that succeeded
};

}  // namespace sluice::testing
