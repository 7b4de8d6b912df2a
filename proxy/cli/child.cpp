#include "proxy/cli/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "proxy/net/socket.h"

namespace sluice {
namespace {

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
  if (options.apart) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
  }
  if (options.output >= 0) dup2(options.output, STDOUT_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(command[0], command, environment);
  const int problem = errno;
  [[maybe_unused]] const auto told = write(report, &problem, sizeof problem);
  _exit(127);
}

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

void hold_signals() {
  const sigset_t set = held_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

Result<pid_t> start_child(const ChildOptions& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{std::strerror(errno)};
  const OwnedSocket hear(ends[0]);
  OwnedSocket tell(ends[1]);
  const auto command = pointers(options.command);
  const auto environment = pointers(options.environment);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return Error{std::strerror(errno)};
  if (child == 0) become(options, command.data(), environment.data(), tell.get(), parent);
  tell = OwnedSocket();
  int problem = 0;
  if (read(hear.get(), &problem, sizeof problem) == sizeof problem) {
    waitpid(child, nullptr, 0);
    return Error{options.command.front() + ": " + std::strerror(problem)};
  }
  return child;
}

int wait_for_child(pid_t child, Duration interval, const std::function<void()>& tick) {
  const sigset_t set = held_signals();
  const timespec pause{static_cast<time_t>(interval / 1s),
                       static_cast<long>(interval % 1s / 1us * 1000)};
  for (;;) {
    siginfo_t about;
    const int number = sigtimedwait(&set, &about, &pause);
    if (number < 0 && errno == EAGAIN) tick();
    if (number > 0 && number != SIGCHLD) {
      // What the terminal sends, the kernel sends to the child as well.
      if (about.si_code == SI_USER || about.si_code == SI_QUEUE || about.si_code == SI_TKILL) {
        kill(child, number);
      }
      continue;
    }
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return exit_code(status);
  }
}

void end_child(pid_t child) {
  kill(child, SIGTERM);
  waitpid(child, nullptr, 0);
}

}  // namespace sluice
