#include "proxy/cli/run_door.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "proxy/admin/unix_socket.h"
#include "proxy/door/passing.h"
#include "proxy/door/word.h"
#include "proxy/net/listener.h"
#include "proxy/net/peer_user.h"

namespace sluice {
namespace {

constexpr int kPatience = 5000;  // ms, for the proxy to take a client, or for its last word
constexpr int kPause = 100;      // ms, when there are no descriptors

}  // namespace

Result<std::unique_ptr<RunDoor>> RunDoor::open(ExecRun run, Find find) {
  std::unique_ptr<RunDoor> door(new RunDoor(std::move(run), std::move(find)));
  if (const auto there = door->knock(); !there) return Error{there.error()};
  auto listening = listen_on(*parse_address("127.0.0.1:0"), 1);
  if (!listening) return Error{listening.error()};
  door->address_ = listening->address;
  door->listener_ = std::move(listening->sockets.front());
  door->wake_ = OwnedSocket(eventfd(0, EFD_CLOEXEC));
  return door;
}

RunDoor::~RunDoor() { close(); }

Result<bool> RunDoor::knock() {
  proxy_ = OwnedSocket();
  const auto path = find_();
  if (!path) return Error{"the proxy has ended"};
  auto socket = connect_unix(*path);
  if (!socket) {
    return Error{"the running proxy takes no clients of `sluice exec` (" + socket.error() +
                 "): --standalone starts one for this command"};
  }
  const std::string hello = introduction(run_);
  if (send(socket->get(), hello.data(), hello.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(hello.size())) {
    return Error{"the proxy has ended"};
  }
  proxy_ = std::move(*socket);
  return true;
}

void RunDoor::start() {
  thread_ = std::thread([this] { serve(); });
}

void RunDoor::serve() {
  for (;;) {
    pollfd waits[] = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    if (poll(waits, 2, -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    if (waits[1].revents != 0) let_in();
  }
}

void RunDoor::let_in() {
  sockaddr_storage from;
  socklen_t size = sizeof from;
  const OwnedSocket client(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &size,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!client) {
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) poll(nullptr, 0, kPause);
    return;
  }
  if (!is_ours(Address::from_sockaddr(reinterpret_cast<sockaddr*>(&from), size))) return;
  if (hand_over(client.get())) return;
  // It may have been started anew.
  if (knock()) hand_over(client.get());
}

// A burst of clients may have to wait for the proxy to take the ones before.
bool RunDoor::hand_over(int client) {
  while (proxy_ && !pass_socket(proxy_.get(), client)) {
    if (errno == ETOOMANYREFS) {  // unix(7): so many descriptors are on their way
      poll(nullptr, 0, kPause);
      continue;
    }
    pollfd wait{proxy_.get(), POLLOUT, 0};
    if (errno != EAGAIN || poll(&wait, 1, kPatience) <= 0) return false;
  }
  return static_cast<bool>(proxy_);
}

bool RunDoor::is_ours(const Address& peer) {
  const auto user = peer_user(peer, address_);
  if (user && (*user == geteuid() || *user == 0)) return true;
  if (user && !complained_) {
    std::cerr << "sluice: turned away a client of another user (" << *user
              << "): the proxy of this command is its user's only\n";
    complained_ = true;
  }
  return false;
}

std::optional<JobState> RunDoor::close() {
  if (!listener_) return std::nullopt;
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
    thread_.join();
  }
  listener_ = OwnedSocket();
  if (auto said = ask()) return said;
  return knock() ? ask() : std::nullopt;
}

std::optional<JobState> RunDoor::ask() {
  if (!proxy_) return std::nullopt;
  shutdown(proxy_.get(), SHUT_WR);
  std::string line;
  for (;;) {
    pollfd wait{proxy_.get(), POLLIN, 0};
    const int ready = poll(&wait, 1, kPatience);
    if (ready < 0 && errno == EINTR) continue;
    char c = 0;
    if (ready <= 0 || read(proxy_.get(), &c, 1) != 1) return std::nullopt;
    if (c == '\n') return read_farewell(line);
    line += c;
  }
}

}  // namespace sluice
