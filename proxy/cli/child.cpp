#include "proxy/cli/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "proxy/clock.h"
#include "proxy/net/socket.h"

namespace sluice {
namespace {

constexpr int kUnknownEnd = 255;  // somebody else has taken the exit code
constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

sigset_t held_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kPassedOn) sigaddset(&set, number);
  sigaddset(&set, SIGCHLD);
  return set;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Only what is safe between fork and exec.
[[noreturn]] void become(const ChildOptions& options, char* const* command,
                         char* const* environment, int report, pid_t parent) {
  if (options.apart) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  if (options.output >= 0) dup2(options.output, STDOUT_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(command[0], command, environment);
  const int problem = errno;
  [[maybe_unused]] const auto told = write(report, &problem, sizeof problem);
  _exit(127);
}

timespec rest_until(Instant due) {
  const Duration left = std::max(due - monotonic_now(), Duration(0));
  return {static_cast<time_t>(left / 1s), static_cast<long>(left % 1s / 1us * 1000)};
}

// What the terminal sends, the kernel sends to the child as well: but for its end, which it tells
// the leader of the session only.
bool is_ours_alone(const siginfo_t& about) {
  return about.si_code <= SI_USER || (about.si_signo == SIGHUP && getsid(0) == getpid());
}

ChildEnd end_of(int status) {
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), true};
  return {WEXITSTATUS(status)};
}

// Of our children that have ended, all but this one.
void let_others_go(pid_t child) {
  for (;;) {
    siginfo_t ended{};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (ended.si_pid == 0 || ended.si_pid == child) return;
    waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace

void hold_signals() {
  const sigset_t set = held_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  // POSIX: the children of who ignores SIGCHLD leave no exit code behind.
  signal(SIGCHLD, SIG_DFL);
}

std::optional<int> early_end() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&ends, number);
  const timespec at_once{};
  const int number = sigtimedwait(&ends, nullptr, &at_once);
  return number > 0 ? std::optional(number) : std::nullopt;
}

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

bool is_alone_within(Duration patience) {
  sigset_t end_of_child;
  sigemptyset(&end_of_child);
  sigaddset(&end_of_child, SIGCHLD);
  const Instant due = monotonic_now() + patience;
  for (;;) {
    pid_t ended = 0;
    do {
      ended = waitpid(-1, nullptr, WNOHANG);
    } while (ended > 0);
    if (ended < 0) return true;
    const timespec pause = rest_until(due);
    if (sigtimedwait(&end_of_child, nullptr, &pause) < 0 && monotonic_now() >= due) return false;
  }
}

StartedChild start_child(const ChildOptions& options) {
  const auto failed = [&](int problem) -> StartedChild {
    return {-1, problem == ENOENT ? 127 : 126,
            options.command.front() + ": " + std::strerror(problem)};
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed(errno);
  const OwnedSocket hear(ends[0]);
  OwnedSocket tell(ends[1]);
  const auto command = pointers(options.command);
  const auto environment = pointers(options.environment);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return failed(errno);
  if (child == 0) become(options, command.data(), environment.data(), tell.get(), parent);
  tell = OwnedSocket();
  int problem = 0;
  if (read(hear.get(), &problem, sizeof problem) == sizeof problem) {
    waitpid(child, nullptr, 0);
    return failed(problem);
  }
  return {child};
}

ChildEnd wait_for_child(pid_t child, Duration interval, const std::function<void()>& tick) {
  const sigset_t set = held_signals();
  Instant due = monotonic_now() + interval;
  for (;;) {
    const timespec pause = rest_until(due);
    siginfo_t about;
    const int number = sigtimedwait(&set, &about, &pause);
    if (number > 0 && number != SIGCHLD && is_ours_alone(about)) kill(child, number);
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return end_of(status);
    if (ended < 0 && errno == ECHILD) return {kUnknownEnd};
    let_others_go(child);
    if (const Instant now = monotonic_now(); now >= due) {
      tick();
      due = now + interval;
    }
  }
}

void end_child(pid_t child) {
  kill(child, SIGTERM);
  waitpid(child, nullptr, 0);
}

}  // namespace sluice
