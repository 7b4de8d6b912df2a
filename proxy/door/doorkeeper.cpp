#include "proxy/door/doorkeeper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>

#include "proxy/door/passing.h"
#include "proxy/door/word.h"

namespace sluice {
namespace {

constexpr std::string_view kName = "door.";
constexpr std::size_t kMaxVisitors = 1024;
constexpr int kPause = 100;  // ms, when there are no descriptors

void remove_the_dead(const std::string& state_directory) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(state_directory, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kName)) continue;
    pid_t process = 0;
    std::from_chars(name.data() + kName.size(), name.data() + name.size(), process);
    if (process > 0 && kill(process, 0) != 0 && errno == ESRCH) unlink(entry.path().c_str());
  }
}

}  // namespace

std::string door_path(const std::string& state_directory, long process) {
  return state_directory + "/" + std::string(kName) + std::to_string(process);
}

Result<std::unique_ptr<Doorkeeper>> Doorkeeper::make(const std::string& state_directory) {
  remove_the_dead(state_directory);
  auto listener = UnixListener::make(door_path(state_directory, getpid()));
  if (!listener) return Error{listener.error()};
  return std::unique_ptr<Doorkeeper>(new Doorkeeper(std::move(*listener)));
}

Doorkeeper::Doorkeeper(UnixListener listener)
    : place_(std::move(listener)),
      listener_(place_.take()),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Doorkeeper::~Doorkeeper() { stop(); }

void Doorkeeper::start(House house) {
  house_ = std::move(house);
  thread_ = std::thread([this] { run(); });
}

void Doorkeeper::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  thread_.join();
  visitors_.clear();
  listener_ = OwnedSocket();
}

void Doorkeeper::run() {
  bool full = false;  // whoever knocks cannot come in, and would be heard at once again
  for (;;) {
    const int knock = full ? -1 : listener_.get();
    std::vector<pollfd> waits = {{wake_.get(), POLLIN, 0}, {knock, POLLIN, 0}};
    for (const Visitor& visitor : visitors_) waits.push_back({visitor.socket.get(), POLLIN, 0});
    if (poll(waits.data(), waits.size(), full ? kPause : -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    for (std::size_t i = 0; i < visitors_.size(); ++i) {
      if (waits[i + 2].revents != 0) hear(visitors_[i]);
    }
    std::erase_if(visitors_, [](const Visitor& visitor) { return visitor.gone; });
    full = waits[1].revents != 0 && !let_in();
  }
}

bool Doorkeeper::let_in() {
  OwnedSocket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
  if (visitors_.size() < kMaxVisitors) visitors_.push_back({std::move(socket)});
  return true;
}

void Doorkeeper::hear(Visitor& visitor) {
  for (;;) {
    Passed passed = next_passed(visitor.socket.get());
    switch (passed.io) {
      case Io::blocked: return;
      case Io::failed: visitor.gone = true; return;
      case Io::ended: return part(visitor);
      case Io::moved: break;
    }
    if (visitor.run) {
      if (passed.socket) house_.welcome(std::move(passed.socket), visitor.run);
      continue;
    }
    if (passed.byte != '\n') {
      visitor.said += passed.byte;
      visitor.gone = visitor.said.size() > kWordLimit;
    } else if (auto run = read_introduction(visitor.said)) {
      visitor.run = std::make_shared<const ExecRun>(std::move(*run));
    } else {
      visitor.gone = true;
    }
    if (visitor.gone) return;
  }
}

// The command is over. What its last answers came to may not be counted yet.
void Doorkeeper::part(Visitor& visitor) {
  visitor.gone = true;
  if (!visitor.run) return;
  auto socket = std::make_shared<OwnedSocket>(std::move(visitor.socket));
  house_.when_settled([socket, run = visitor.run, count = house_.count] {
    const std::string line = farewell(count(*run));
    [[maybe_unused]] const auto sent =
        send(socket->get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

}  // namespace sluice
