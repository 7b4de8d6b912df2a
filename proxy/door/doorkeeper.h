// The proxy's end of `sluice exec`: a unix socket in the state directory, open to its owner only,
// over which each run of exec hands in the connections of its clients. Who comes in so is known by
// the run, whether or not the client can show a name to a proxy. A thread of its own, which never
// waits for a run or for a worker.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "policy/job.h"
#include "policy/result.h"
#include "proxy/admin/unix_socket.h"
#include "proxy/exec_run.h"
#include "proxy/net/socket.h"

namespace sluice {

// Of the proxy with that process number.
std::string door_path(const std::string& state_directory, long process);

class Doorkeeper {
 public:
  struct House {  // all of it from the doorkeeper's thread or a worker's
    std::function<void(OwnedSocket client, ExecRunRef run)> welcome;
    // Does it when all that the workers are doing now is done.
    std::function<void(std::function<void()> task)> when_settled;
    std::function<JobState(const ExecRun& run)> count;
  };

  // Removes the doors of proxies that have died.
  static Result<std::unique_ptr<Doorkeeper>> make(const std::string& state_directory);
  ~Doorkeeper();
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

  void start(House house);
  void stop();  // nobody is let in any more; runs find that out when they knock

 private:
  struct Visitor {
    OwnedSocket socket;
    std::string said{};  // of its first line
    ExecRunRef run{};    // null: it has not said yet
    bool gone = false;
  };

  Doorkeeper(UnixListener listener);
  void run();
  bool let_in();  // false: there is no descriptor for who stands there
  void hear(Visitor& visitor);
  void part(Visitor& visitor);

  UnixListener place_;  // the file; the socket is the next one
  OwnedSocket listener_, wake_;
  House house_;
  std::vector<Visitor> visitors_;
  std::thread thread_;
};

}  // namespace sluice
