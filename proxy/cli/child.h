// A child process with an environment of its own: started, fed the signals that were meant for it,
// and waited for. Main thread only.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "policy/result.h"
#include "policy/time.h"

namespace sluice {

// Blocks the signals that wait_for_child() passes on. Call before the child starts; the child gets
// the old mask back.
void hold_signals();

struct ChildOptions {
  std::vector<std::string> command{};
  std::vector<std::string> environment{};  // "NAME=value"
  int output = -1;                         // its standard output; -1: ours
  bool apart = false;                      // not in our process group, and ended when we end
};

// Not found, not executable: the error says so.
Result<pid_t> start_child(const ChildOptions& options);

// Passes signals on until the child has ended, and gives its exit code, or 128 and the signal that
// ended it. `tick` is called about every `interval`.
int wait_for_child(pid_t child, Duration interval, const std::function<void()>& tick);

void end_child(pid_t child);  // SIGTERM, and waits

}  // namespace sluice
