#include "proxy/cli/private_proxy.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "proxy/cli/child.h"
#include "proxy/net/socket.h"

namespace sluice {
namespace {

constexpr std::string_view kReady = "ready: proxy ";

std::vector<std::string> command_line(const ConfigFlags& flags, const LoadedConfig& loaded) {
  std::vector<std::string> out = {"/proc/self/exe", "run"};
  const auto add = [&](const char* flag, const std::string& value) {
    out.emplace_back(flag);
    out.push_back(value);
  };
  if (flags.config) add("--config", *flags.config);
  if (flags.policies) add("--policies", *flags.policies);
  for (const std::string& setting : flags.set) add("--set", setting);
  add("--state-dir", loaded.state_dir);
  add("--listen", "127.0.0.1:0");
  add("--admin", "off");
  add("--set", "log.level=\"warn\"");
  add("--set", "proxy.drain=\"1s\"");
  return out;
}

// One line, or what came before the end.
std::string read_line(int fd) {
  std::string line;
  for (char c; read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

}  // namespace

Result<std::unique_ptr<PrivateProxy>> PrivateProxy::start(const ConfigFlags& flags,
                                                          const LoadedConfig& loaded,
                                                          const Environment& environment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{std::strerror(errno)};
  const OwnedSocket hear(ends[0]);
  OwnedSocket tell(ends[1]);
  ChildOptions options{.command = command_line(flags, loaded), .output = tell.get(), .apart = true};
  for (const auto& [name, value] : environment.variables) {
    options.environment.push_back(name + "=" + value);
  }
  const StartedChild child = start_child(options);
  if (child.process < 0) return Error{"no proxy could be started: " + child.error};
  tell = OwnedSocket();
  const std::string line = read_line(hear.get());
  if (line.find(kReady) == std::string::npos) {
    waitpid(child.process, nullptr, 0);  // it has said why
    return Error{"the proxy for this command did not start"};
  }
  return std::unique_ptr<PrivateProxy>(new PrivateProxy(child.process));
}

PrivateProxy::~PrivateProxy() { end(); }

bool PrivateProxy::has_ended() {
  // Less than zero: whoever waits for all children has seen it end.
  if (process_ >= 0 && waitpid(process_, nullptr, WNOHANG) != 0) process_ = -1;
  return process_ < 0;
}

void PrivateProxy::end() {
  if (!has_ended()) end_child(std::exchange(process_, -1));
}

}  // namespace sluice
