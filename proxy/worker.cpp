#include "proxy/worker.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "proxy/clock.h"

namespace sluice {
namespace {

constexpr std::size_t kScratch = 128 * 1024;
constexpr int kAcceptsAtOnce = 64;
constexpr timeval kAcceptPause{0, 100'000};
constexpr Duration kComplainEvery = 10s;

// Each loop belongs to one thread, so libevent needs no locks.
event_base* make_base() {
  const Owned<event_config, event_config_free> config(event_config_new());
  event_config_set_flag(config.get(), EVENT_BASE_FLAG_NOLOCK);
  event_config_require_features(config.get(), EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE);
  return event_base_new_with_config(config.get());
}

template <void (Worker::*Member)()>
event_callback_fn calls() {
  return [](int, short, void* self) { (static_cast<Worker*>(self)->*Member)(); };
}

}  // namespace

Worker::Worker(Shared& shared, std::vector<OwnedSocket> listeners)
    : shared_(shared),
      base_(make_base()),
      resolver_(base_.get(), shared.config.proxy.resolve),
      dialer_(base_.get(),
              [&shared](const Address& address) { return shared.access.destination(address); }),
      pool_(base_.get(), PoolLimits{.idle = shared.config.proxy.timeouts.idle}),
      scratch_(kScratch),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  burial_.reset(event_new(base(), -1, 0, calls<&Worker::dig>(), this));
  accept_again_.reset(event_new(base(), -1, 0, calls<&Worker::resume_accepting>(), this));
  wake_.reset(
      event_new(base(), wake_fd_.get(), EV_READ | EV_PERSIST, calls<&Worker::run_posted>(), this));
  event_add(wake_.get(), nullptr);
  listeners_.reserve(listeners.size());
  for (OwnedSocket& socket : listeners) {
    Listener& listener = listeners_.emplace_back(Listener{this, std::move(socket), nullptr});
    listener.ready.reset(event_new(
        base(), listener.socket.get(), EV_READ | EV_PERSIST,
        [](int, short, void* at) {
          auto& l = *static_cast<Listener*>(at);
          l.worker->accept(l);
        },
        &listener));
    event_add(listener.ready.get(), nullptr);
  }
}

Worker::~Worker() {
  robots_fetches_.clear();
  clients_.clear();
  buried_clients_.clear();
  buried_origins_.clear();
  pool_.clear();
}

void Worker::start() {
  thread_ = std::thread([this] { run(); });
}

void Worker::run() { event_base_loop(base(), EVLOOP_NO_EXIT_ON_EMPTY); }

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

void Worker::post(std::function<void()> task) {
  {
    const std::lock_guard guard(posted_lock_);
    posted_.push_back(std::move(task));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_.get(), &one, sizeof one);
}

void Worker::run_posted() {
  std::uint64_t count;
  [[maybe_unused]] const auto got = ::read(wake_fd_.get(), &count, sizeof count);
  std::vector<std::function<void()>> jobs;
  {
    const std::lock_guard guard(posted_lock_);
    jobs.swap(posted_);
  }
  for (const auto& job : jobs) job();
}

void Worker::stop() {
  post([this] { event_base_loopbreak(base()); });
}

void Worker::stop_accepting_and_drain() {
  post([this] { begin_drain(); });
}

void Worker::cut_everything() {
  post([this] {
    pool_.clear();
    for (auto it = clients_.begin(); it != clients_.end();) (it++)->cut();
  });
}

void Worker::begin_drain() {
  draining_ = true;
  listeners_.clear();
  event_del(accept_again_.get());
  pool_.clear();
  for (auto it = clients_.begin(); it != clients_.end();) (it++)->drain();
  idle_ = clients_.empty();
}

void Worker::accept(Listener& listener) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    sockaddr_storage from;
    socklen_t size = sizeof from;
    const int fd = accept4(listener.socket.get(), reinterpret_cast<sockaddr*>(&from), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      const Address peer = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&from), size);
      welcome(OwnedSocket(fd), peer, shared_.access.client_allowed(peer), nullptr);
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      const int why = errno;
      if (const Instant now = monotonic_now(); now >= complain_again_) {
        complain_again_ = now + kComplainEvery;
        spdlog::warn("no more connections can be accepted for now: {}", std::strerror(why));
      }
      pause_accepting();
      return;
    }
    if (errno != ECONNABORTED && errno != EINTR) return;
  }
}

// Whoever may open the door may use the proxy.
void Worker::take_in(OwnedSocket socket, ExecRunRef run) {
  // What waits to be run must be copyable.
  auto held = std::make_shared<OwnedSocket>(std::move(socket));
  post([this, held, run = std::move(run)] {
    sockaddr_storage from;
    socklen_t size = sizeof from;
    if (draining_ || getpeername(held->get(), reinterpret_cast<sockaddr*>(&from), &size) != 0) {
      return;
    }
    welcome(std::move(*held), Address::from_sockaddr(reinterpret_cast<sockaddr*>(&from), size),
            true, run);
  });
}

void Worker::welcome(OwnedSocket socket, const Address& peer, bool allowed, ExecRunRef run) {
  if (shared_.clients.fetch_add(1) >= shared_.config.proxy.max_clients) {
    shared_.clients.fetch_sub(1);
    const Refusal refusal{503,
                          "overloaded",
                          "connection_limit_reached",
                          "the proxy serves as many clients as proxy.max_clients allows",
                          {},
                          1,
                          {}};
    shared_.governor.tally().refused(refusal.reason);
    const std::string reply = render(refusal, {ReplyFormat::json, false, true, date()});
    [[maybe_unused]] const auto sent = send(socket.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
    shutdown(socket.get(), SHUT_WR);
    return;
  }
  ClientConn& conn = clients_.emplace_back(*this, std::move(socket), peer, allowed, std::move(run));
  conn.self = std::prev(clients_.end());
}

void Worker::serve_inside(OwnedSocket socket, Inside place) {
  shared_.clients.fetch_add(1);
  ClientConn& conn = clients_.emplace_back(*this, std::move(socket), std::move(place));
  conn.self = std::prev(clients_.end());
}

void Worker::fetch_robots(const std::string& origin, Inside place, Duration patience) {
  RobotsFetch* fetch =
      robots_fetches_.emplace_back(std::make_unique<RobotsFetch>(*this, std::move(place), patience))
          .get();
  fetch->start([this, origin, fetch](RobotsFile file, Duration keep) {
    const Instant now = monotonic_now();
    spdlog::debug("robots.txt of {} is known for {} s", origin, keep / 1s);
    shared_.robots.learned(origin, std::move(file), now, now + keep);
    post([this, fetch] {
      std::erase_if(robots_fetches_, [fetch](const auto& one) { return one.get() == fetch; });
    });
  });
}

void Worker::pause_accepting() {
  for (const Listener& listener : listeners_) event_del(listener.ready.get());
  event_add(accept_again_.get(), &kAcceptPause);
}

void Worker::resume_accepting() {
  for (const Listener& listener : listeners_) event_add(listener.ready.get(), nullptr);
}

bool Worker::connect_port_allowed(std::uint16_t port) const {
  for (const PortRange& range : shared_.config.proxy.connect_ports) {
    if (port >= range.first && port <= range.last) return true;
  }
  return false;
}

// RFC 9110 §5.6.7: IMF-fixdate, always GMT.
std::string_view Worker::date() {
  const std::int64_t second = utc_now().time_since_epoch() / 1s;
  if (second != date_second_) {
    date_second_ = second;
    const time_t time = second;
    tm parts;
    gmtime_r(&time, &parts);
    char text[40];
    date_.assign(text, strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts));
  }
  return date_;
}

// Nothing is destroyed while something up the stack may still use it: the dead wait for the next
// turn of the loop.
void Worker::bury(ClientConn& conn) {
  buried_clients_.splice(buried_clients_.end(), clients_, conn.self);
  shared_.clients.fetch_sub(1, std::memory_order_relaxed);
  if (!std::exchange(digging_, true)) event_active(burial_.get(), EV_TIMEOUT, 0);
  if (draining_) idle_ = clients_.empty();
}

void Worker::bury(std::unique_ptr<OriginConn> conn) {
  buried_origins_.push_back(std::move(conn));
  if (!std::exchange(digging_, true)) event_active(burial_.get(), EV_TIMEOUT, 0);
}

void Worker::dig() {
  digging_ = false;
  buried_clients_.clear();
  buried_origins_.clear();
}

}  // namespace sluice
