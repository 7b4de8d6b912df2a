// Watches the policies directory and puts what changes in force within a second: files written,
// renamed or removed (inotify), also behind symbolic links, or on demand (SIGHUP). A bad file is
// named in the log and the events, and its last good version stays. A thread of its own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "policy/policy.h"
#include "policy/policy_set.h"
#include "proxy/governor/governor.h"
#include "proxy/net/socket.h"

namespace sluice {

class PolicyWatch {
 public:
  struct Hooks {  // on the watch's thread, which may wait for files
    std::function<void(const PolicySet&)> before_in_force;
    std::function<void()> now_and_then;  // every few seconds
  };

  // `directory` empty: there is nothing to watch. The directory itself may come and go.
  PolicyWatch(std::string directory, Policy base, Governor& governor, Hooks hooks);
  ~PolicyWatch();
  PolicyWatch(const PolicyWatch&) = delete;
  PolicyWatch& operator=(const PolicyWatch&) = delete;

  void reload();  // soon; any thread

 private:
  void run();
  void watch_directory();
  void look_behind_links();
  bool read_changes();
  void load();
  void report(const PolicyLoad& before, const PolicyLoad& after);

  const std::string directory_;
  const Policy base_;
  Governor& governor_;
  const Hooks hooks_;
  OwnedSocket inotify_, wake_;
  std::atomic<bool> ending_{false};
  std::atomic<bool> asked_{false};
  bool watching_ = false;
  int watch_ = -1;    // of the directory below
  dev_t device_ = 0;  // which one is watched
  ino_t inode_ = 0;
  std::string linked_;  // what the files behind symbolic links were when last looked at
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace sluice
