// Where the daemon of a state directory listens, for commands that look for it: one small file,
// written when it is ready and removed when it ends. A record whose process is gone says nothing.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace sluice {

class DaemonRecord {
 public:
  // Writes it; removed with this object, unless another process has written its own by then.
  DaemonRecord(const std::string& state_directory, const std::string& address);
  ~DaemonRecord();
  DaemonRecord(const DaemonRecord&) = delete;
  DaemonRecord& operator=(const DaemonRecord&) = delete;

 private:
  const std::string path_;
  std::string text_;
};

struct RunningDaemon {
  std::string address;  // at which it takes clients
  pid_t process;
};

// None: no daemon is running.
std::optional<RunningDaemon> find_daemon(const std::string& state_directory);

}  // namespace sluice
