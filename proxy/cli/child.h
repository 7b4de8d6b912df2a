// A child process with an environment of its own: started, fed the signals that were meant for it,
// and waited for. Main thread only.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "policy/time.h"

namespace sluice {

// Blocks the signals that wait_for_child() passes on, and sees to it that a child's end is told,
// also where whoever started us ignored that. Call before the child starts; a child starts with
// nothing blocked.
void hold_signals();

// One of the held signals that ask us to end, where it came before there was a child to have it.
std::optional<int> early_end();

// Who is left behind by a descendant that ends becomes a child of ours, so that it is not lost
// sight of; wait_for_child() sees to those that end.
void adopt_orphans();
bool is_alone_within(Duration patience);  // whether all children have ended by then

struct ChildOptions {
  std::vector<std::string> command{};
  std::vector<std::string> environment{};  // "NAME=value"
  int output = -1;                         // its standard output; -1: ours
  bool apart = false;                      // not in our process group
};

struct StartedChild {
  pid_t process = -1;   // -1: there is none, and then
  int exit_code = 0;    // what shells say: 127 it was not found, 126 it cannot be run
  std::string error{};  // and why
};

// A child gets SIGTERM when we end before it, however we end.
StartedChild start_child(const ChildOptions& options);

struct ChildEnd {
  int exit_code;  // or 128 and the signal that ended it
  bool by_signal = false;
};

// Passes signals on until the child has ended; of adopted children, it lets go of those that end.
// `tick` is called every `interval`, whatever signals come.
ChildEnd wait_for_child(pid_t child, Duration interval, const std::function<void()>& tick);

void end_child(pid_t child);  // SIGTERM, and waits

}  // namespace sluice
