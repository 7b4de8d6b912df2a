#include "proxy/admin/loop.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice {
namespace {

constexpr timeval kFollowEvery{0, 250'000};
constexpr timeval kAtOnce{0, 0};
constexpr timeval kAcceptPause{0, 100'000};
constexpr int kAcceptsAtOnce = 16;

event_base* make_base() {
  event_config* config = event_config_new();
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  event_config_require_features(config, EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE);
  event_base* base = event_base_new_with_config(config);
  event_config_free(config);
  return base;
}

template <void (AdminLoop::*Member)()>
event_callback_fn calls() {
  return [](int, short, void* self) { (static_cast<AdminLoop*>(self)->*Member)(); };
}

// unix(7): who the kernel says is at the other end, when it connected.
bool peer_is_us(int fd) {
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return false;
  return who.uid == geteuid() || who.uid == 0;
}

Address local_address(int fd) {
  sockaddr_storage storage;
  socklen_t size = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  return Address::from_sockaddr(reinterpret_cast<sockaddr*>(&storage), size);
}

}  // namespace

AdminLoop::AdminLoop(AdminSource& source, std::string token, std::vector<AdminListener> listeners,
                     AdminOptions options)
    : api_(source),
      token_(std::move(token)),
      options_(std::move(options)),
      base_(make_base()),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  mailbox_->wake = wake_fd_.get();
  wake_.reset(event_new(base(), wake_fd_.get(), EV_READ | EV_PERSIST,
                        calls<&AdminLoop::run_posted>(), this));
  burial_.reset(event_new(base(), -1, 0, calls<&AdminLoop::dig>(), this));
  accept_again_.reset(event_new(base(), -1, 0, calls<&AdminLoop::resume_accepting>(), this));
  follow_.reset(event_new(base(), -1, 0, calls<&AdminLoop::follow>(), this));
  minute_.reset(event_new(base(), -1, 0, calls<&AdminLoop::each_minute>(), this));
  event_add(wake_.get(), nullptr);
  event_add(minute_.get(), &kAtOnce);
  listeners_.reserve(listeners.size());
  for (AdminListener& one : listeners) {
    Listener& listener = listeners_.emplace_back(Listener{this, std::move(one), nullptr});
    listener.ready.reset(event_new(
        base(), listener.listener.socket.get(), EV_READ | EV_PERSIST,
        [](int, short, void* at) {
          auto& ready = *static_cast<Listener*>(at);
          ready.loop->accept(ready);
        },
        &listener));
    event_add(listener.ready.get(), nullptr);
  }
}

AdminLoop::~AdminLoop() {
  post([this] { event_base_loopbreak(base()); });
  if (thread_.joinable()) thread_.join();
  const std::lock_guard guard(mailbox_->mutex);
  mailbox_->wake = -1;
  mailbox_->jobs.clear();
}

void AdminLoop::start() {
  thread_ = std::thread([this] { event_base_loop(base(), EVLOOP_NO_EXIT_ON_EMPTY); });
}

void AdminLoop::accept(Listener& listener) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    OwnedSocket socket(accept4(listener.listener.socket.get(), reinterpret_cast<sockaddr*>(&from),
                               &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      // The listener would stay ready and the loop would spin.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        pause_accepting();
      return;
    }
    const Address peer = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&from), size);
    admit(std::move(socket), listener.listener.unix_socket, peer);
  }
}

void AdminLoop::pause_accepting() {
  for (const Listener& listener : listeners_) event_del(listener.ready.get());
  event_add(accept_again_.get(), &kAcceptPause);
}

void AdminLoop::resume_accepting() {
  for (const Listener& listener : listeners_) event_add(listener.ready.get(), nullptr);
}

void AdminLoop::admit(OwnedSocket socket, bool unix_socket, const Address& peer) {
  if (unix_socket && !peer_is_us(socket.get())) return;
  if (!unix_socket && !peer.is_loopback() && options_.welcome && !options_.welcome(peer)) return;
  if (!make_room(unix_socket)) return;
  const AdminPeer how{unix_socket, unix_socket ? Address{} : local_address(socket.get())};
  AdminConn& conn = conns_.emplace_back(*this, std::move(socket), how, next_id_++);
  conn.self = std::prev(conns_.end());
}

// The oldest that does nothing makes room for a newcomer; when all are busy, there is none.
bool AdminLoop::make_room(bool unix_socket) {
  const auto same = [&](const AdminConn& conn) { return conn.unix_socket() == unix_socket; };
  if (std::count_if(conns_.begin(), conns_.end(), same) <
      static_cast<std::ptrdiff_t>(kMaxConnections))
    return true;
  const auto idle = std::find_if(conns_.begin(), conns_.end(),
                                 [&](const AdminConn& conn) { return same(conn) && conn.idle(); });
  if (idle == conns_.end()) return false;
  bury(*idle);
  return true;
}

std::optional<AdminReply> AdminLoop::answer(const AdminRequest& request, std::uint64_t conn) {
  const auto deliver = [this, conn](const AdminReply& reply) {
    api_.order_done();
    for (AdminConn& one : conns_)
      if (one.id() == conn) return one.finish(reply);
  };
  return api_.answer(request, [mailbox = mailbox_, deliver](AdminReply reply) {
    const std::lock_guard guard(mailbox->mutex);
    if (mailbox->wake < 0) return;
    mailbox->jobs.emplace_back([deliver, reply = std::move(reply)] { deliver(reply); });
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(mailbox->wake, &one, sizeof one);
  });
}

bool AdminLoop::admit_stream() {
  const auto streams = std::count_if(conns_.begin(), conns_.end(),
                                     [](const AdminConn& conn) { return conn.streaming(); });
  if (streams == 0) event_add(follow_.get(), &kFollowEvery);
  return static_cast<std::size_t>(streams) < kMaxStreams;
}

void AdminLoop::follow() {
  api_.tail().poll();
  bool any = false;
  for (auto conn = conns_.begin(); conn != conns_.end();) {
    AdminConn& one = *conn++;  // it may leave
    any |= one.streaming();
    one.follow();
  }
  if (any) event_add(follow_.get(), &kFollowEvery);
}

void AdminLoop::each_minute() {
  api_.each_minute();
  const timeval minute{static_cast<time_t>(options_.minute / 1s),
                       static_cast<suseconds_t>(options_.minute % 1s / 1us)};
  event_add(minute_.get(), &minute);
}

void AdminLoop::post(std::function<void()> job) {
  const std::lock_guard guard(mailbox_->mutex);
  mailbox_->jobs.push_back(std::move(job));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(mailbox_->wake, &one, sizeof one);
}

void AdminLoop::run_posted() {
  std::uint64_t count;
  [[maybe_unused]] const auto got = ::read(wake_fd_.get(), &count, sizeof count);
  std::vector<std::function<void()>> jobs;
  {
    const std::lock_guard guard(mailbox_->mutex);
    jobs.swap(mailbox_->jobs);
  }
  for (const auto& job : jobs) job();
}

// Nothing is destroyed while something up the stack may still use it.
void AdminLoop::bury(AdminConn& conn) {
  buried_.splice(buried_.end(), conns_, conn.self);
  event_active(burial_.get(), EV_TIMEOUT, 0);
}

void AdminLoop::dig() { buried_.clear(); }

}  // namespace sluice
