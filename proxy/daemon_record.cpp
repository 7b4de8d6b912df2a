#include "proxy/daemon_record.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "proxy/net/address.h"
#include "proxy/net/socket.h"

namespace sluice {
namespace {

std::string record_path(const std::string& state_directory) {
  return state_directory + "/proxy.address";
}

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// Listening on every address means that the loopback reaches it.
std::string reachable(const std::string& text) {
  auto address = parse_address(text);
  if (!address || !address->is_unspecified()) return text;
  const bool v6 = address->family == Address::Family::v6;
  return (v6 ? "[::1]:" : "127.0.0.1:") + std::to_string(address->port);
}

bool answers(const std::string& text) {
  const auto address = parse_address(text);
  if (!address) return false;
  sockaddr_storage storage{};
  const socklen_t size = address->to_sockaddr(storage);
  const OwnedSocket socket(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket && connect(socket.get(), reinterpret_cast<const sockaddr*>(&storage), size) == 0;
}

}  // namespace

DaemonRecord::DaemonRecord(const std::string& state_directory, const std::string& address)
    : path_(record_path(state_directory)),
      text_(reachable(address) + " " + std::to_string(getpid())) {
  const std::string draft = path_ + "." + std::to_string(getpid());
  std::ofstream(draft) << text_ << "\n";
  if (rename(draft.c_str(), path_.c_str()) != 0) unlink(draft.c_str());
}

DaemonRecord::~DaemonRecord() {
  if (first_line(path_) == text_) unlink(path_.c_str());
}

std::optional<RunningDaemon> find_daemon(const std::string& state_directory) {
  const std::string line = first_line(record_path(state_directory));
  const auto space = line.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const long pid = std::strtol(line.c_str() + space + 1, nullptr, 10);
  if (pid <= 0 || (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)) return std::nullopt;
  const std::string address = line.substr(0, space);
  if (!answers(address)) return std::nullopt;
  return RunningDaemon{address, static_cast<pid_t>(pid)};
}

}  // namespace sluice
