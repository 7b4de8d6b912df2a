#include "proxy/alerts/alert_command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "policy/classify.h"
#include "policy/units.h"
#include "proxy/alerts/body.h"
#include "proxy/clock.h"
#include "proxy/net/socket.h"
#include "proxy/owned.h"

namespace sluice {
namespace {

constexpr Duration kLook = 50ms;       // how soon it is noticed that the program ends
constexpr std::size_t kMaxSaid = 200;  // of what it prints, for the log

// Whatever a script needs to run, and nothing of ours: no proxy, no sockets of systemd, no SLUICE_.
constexpr const char* kKept[] = {"HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"};

std::vector<std::string> environment(const AlertFields& fields, const std::string& machine) {
  const char* path = std::getenv("PATH");
  std::vector<std::string> out = {std::string("PATH=") +
                                  (path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin")};
  for (const char* name : kKept) {
    if (const char* value = std::getenv(name)) out.push_back(std::string(name) + "=" + value);
  }
  out.push_back("SLUICE_ALERT_KIND=" + fields.kind);
  out.push_back("SLUICE_ALERT_KEY=" + fields.key);
  out.push_back("SLUICE_ALERT_SENTENCE=" + fields.sentence);
  out.push_back("SLUICE_ALERT_AT=" + fields.at);
  out.push_back("SLUICE_ALERT_COUNT=" + std::to_string(fields.count));
  out.push_back("SLUICE_ALERT_HOST=" + machine);
  out.push_back("SLUICE_ALERT_TEXT=" + fields.text);
  // An environment ends at the first zero byte.
  for (std::string& variable : out) std::replace(variable.begin(), variable.end(), '\0', ' ');
  return out;
}

struct Pipe {
  OwnedSocket read, write;
};
std::optional<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return std::nullopt;
  return Pipe{OwnedSocket(ends[0]), OwnedSocket(ends[1])};
}

// posix_spawn, not fork: other threads hold locks that a copy of the process would never get.
int spawn(const std::string& command, const std::vector<std::string>& variables, int in, int out,
          pid_t& child) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none, standard;
  sigemptyset(&none);
  sigfillset(&standard);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setsigdefault(&how, &standard);
  posix_spawnattr_setflags(&how,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> environment;
  for (const std::string& variable : variables)
    environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  char* const arguments[] = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                             const_cast<char*>(command.c_str()), nullptr};
  const int problem = posix_spawn(&child, "/bin/sh", &files, &how, arguments, environment.data());
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  return problem;
}

// The running command, which does not outlive this: whatever is left of its process group is
// killed, also what it left in the background.
class Run {
 public:
  Run(pid_t child, Pipe in, Pipe out)
      : child_(child), in_(std::move(in.write)), out_(std::move(out.read)) {}
  ~Run() {
    // The number is the child's, and that of its group, until it has been waited for.
    ::kill(-child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Feeds it, hears it, and waits. None: it took too long, or we are to end.
  std::optional<int> finish(std::string_view input, Duration most, const std::atomic<bool>& ending,
                            std::string& said) {
    const Instant end = monotonic_now() + most;
    while (!ending && monotonic_now() < end) {
      feed(input);
      pollfd waits[] = {{out_.get(), POLLIN, 0}, {in_.get(), POLLOUT, 0}};
      ::poll(waits, 2, kLook / 1ms);
      hear(said);
      siginfo_t about{};
      // Not taken away yet, so that its number stays its own until its group has been killed.
      if (::waitid(P_PID, static_cast<id_t>(child_), &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          about.si_pid == 0) {
        continue;
      }
      return about.si_code == CLD_EXITED ? about.si_status : 128 + about.si_status;
    }
    return std::nullopt;
  }

 private:
  void feed(std::string_view& input) {
    if (!in_) return;
    const ssize_t count = ::write(in_.get(), input.data(), input.size());
    if (count > 0) input.remove_prefix(static_cast<std::size_t>(count));
    if (input.empty() || (count < 0 && errno != EAGAIN && errno != EINTR)) in_ = OwnedSocket();
  }
  void hear(std::string& said) {
    if (!out_) return;
    char bytes[4096];
    const ssize_t count = ::read(out_.get(), bytes, sizeof bytes);
    if (count > 0) {
      said.append(bytes, std::min(static_cast<std::size_t>(count), kMaxSaid - said.size()));
    } else if (count == 0) {
      out_ = OwnedSocket();
    }
  }

  const pid_t child_;
  OwnedSocket in_, out_;
};

}  // namespace

Delivery AlertCommand::deliver(const AlertMessage& message, UtcTime now,
                               const std::atomic<bool>& ending) {
  const AlertFields fields = alert_fields(message, options_.machine, now);
  const std::string body = alert_body(message, options_.machine, now, BodyFor::program) + "\n";
  auto in = make_pipe(), out = make_pipe();
  if (!in || !out) return {Delivery::Kind::later, std::strerror(errno), 0s};
  // Ours never block; the command's do.
  for (const int theirs : {in->read.get(), out->write.get()}) fcntl(theirs, F_SETFL, 0);
  pid_t child = 0;
  const int problem = spawn(options_.command, environment(fields, options_.machine), in->read.get(),
                            out->write.get(), child);
  if (problem != 0) {
    return {Delivery::Kind::later, std::string("/bin/sh: ") + std::strerror(problem), 0s};
  }
  in->read = OwnedSocket();
  out->write = OwnedSocket();
  Run run(child, std::move(*in), std::move(*out));
  std::string said;
  const auto status = run.finish(body, options_.timeout, ending, said);
  if (status == 0) return {};
  Delivery delivery{Delivery::Kind::later,
                    status ? "it ended with " + std::to_string(*status)
                           : "it was killed after " + format_duration(options_.timeout),
                    0s};
  said = printable(said, kMaxSaid);
  if (said.find_first_not_of(' ') != std::string::npos) delivery.problem += " (" + said + ")";
  return delivery;
}

}  // namespace sluice
