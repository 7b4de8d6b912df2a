// The door of one run of `sluice exec`: an address of its own that the command's clients take for
// the proxy. Each connection is handed to the proxy as one of this run, so that it is known
// whatever the client can show. Only connections of the same user, or root's, are. The address is
// gone when exec is, however that ends. A thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "policy/job.h"
#include "policy/result.h"
#include "proxy/exec_run.h"
#include "proxy/net/address.h"
#include "proxy/net/socket.h"

namespace sluice {

class RunDoor {
 public:
  // Where the proxy takes connections in; none: it is not running. Asked again when it has gone.
  using Find = std::function<std::optional<std::string>()>;

  static Result<std::unique_ptr<RunDoor>> open(ExecRun run, Find find);
  ~RunDoor();
  RunDoor(const RunDoor&) = delete;
  RunDoor& operator=(const RunDoor&) = delete;

  const Address& address() const { return address_; }
  void start();  // until then, clients wait; call it after the last fork
  // Lets nobody in any more, and asks what the run came to. None: there is nobody to ask.
  std::optional<JobState> close();

 private:
  RunDoor(ExecRun run, Find find) : run_(std::move(run)), find_(std::move(find)) {}
  Result<bool> knock();
  void serve();
  void let_in();
  bool hand_over(int client);
  bool is_ours(const Address& peer);
  std::optional<JobState> ask();

  const ExecRun run_;
  const Find find_;
  Address address_;
  OwnedSocket listener_, wake_;
  OwnedSocket proxy_;  // the way to it: the thread's own while that runs
  bool complained_ = false;
  std::thread thread_;
};

}  // namespace sluice
