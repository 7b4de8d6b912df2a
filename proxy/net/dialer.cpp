#include "proxy/net/dialer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "proxy/clock.h"

namespace sluice {

namespace {

struct FreeEvent {
  void operator()(event* e) const noexcept { event_free(e); }
};
using EventPtr = std::unique_ptr<event, FreeEvent>;

EventPtr new_event(event_base* base, int fd, short what, event_callback_fn run, void* argument) {
  EventPtr made(event_new(base, fd, what, run, argument));
  if (!made) std::abort();  // out of memory
  return made;
}

void start_timer(event* timer, Duration wait) {
  const auto left = std::max<Duration::rep>(wait.count(), 0);
  const timeval time = {static_cast<time_t>(left / 1'000'000),
                        static_cast<suseconds_t>(left % 1'000'000)};
  event_add(timer, &time);
}

ConnectError kind_of(int code) {
  switch (code) {
    case ECONNREFUSED:
    case ECONNRESET: return ConnectError::refused;
    case ETIMEDOUT: return ConnectError::timed_out;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EAGAIN:         // no port left, says connect(2)
    case EADDRNOTAVAIL:  // likewise
      return ConnectError::local;
    default: return ConnectError::unreachable;
  }
}

// Of several failures the one that tells most about the origin is reported.
int weight(ConnectError error) {
  switch (error) {
    case ConnectError::refused: return 4;
    case ConnectError::timed_out: return 3;
    case ConnectError::local: return 2;
    case ConnectError::unreachable: return 1;
    default: return 0;
  }
}

Connected failure(ConnectError error, std::string detail) {
  Connected result;
  result.error = error;
  result.detail = std::move(detail);
  return result;
}

// RFC 8305 §4: the families take turns, the first address's family first.
std::vector<Address> interleaved(const std::vector<Address>& addresses, std::size_t most) {
  std::vector<Address> order;
  if (addresses.empty()) return order;
  const auto first = addresses.front().family;
  const auto next = [&](std::size_t from, bool of_first) {
    while (from < addresses.size() && (addresses[from].family == first) != of_first) ++from;
    return from;
  };
  std::size_t a = next(0, true), b = next(0, false);
  while (order.size() < most && (a < addresses.size() || b < addresses.size())) {
    if (a < addresses.size()) order.push_back(addresses[a]), a = next(a + 1, true);
    if (b < addresses.size() && order.size() < most)
      order.push_back(addresses[b]), b = next(b + 1, false);
  }
  return order;
}

}  // namespace

// One connection in the making: first its name, then a race of attempts. Ends by one call of the
// callback, after which nothing here is touched: the callback may destroy it.
class Dialing {
 public:
  Dialing(const Dialer& dialer, std::uint16_t port, Instant deadline, ConnectCallback callback)
      : dialer_(dialer), port_(port), callback_(std::move(callback)) {
    deadline_ = timer<&Dialing::on_deadline>();
    stagger_ = timer<&Dialing::on_stagger>();
    failed_ = timer<&Dialing::on_failed>();
    start_timer(deadline_.get(), deadline - monotonic_now());
  }
  Dialing(const Dialing&) = delete;
  Dialing& operator=(const Dialing&) = delete;

  void start(Resolver& resolver, std::string_view host);
  void start(const Resolution& resolution);

 private:
  struct Attempt {
    Dialing* dialing;
    Address address;
    OwnedSocket socket;
    EventPtr writable;  // after the socket: it goes first
  };

  template <void (Dialing::*method)()>
  EventPtr timer() {
    return new_event(
        dialer_.base_, -1, 0,
        [](evutil_socket_t, short, void* self) { (static_cast<Dialing*>(self)->*method)(); }, this);
  }

  void proceed();
  bool open(const Address& address);
  void on_writable(Attempt& attempt);
  void note(const Address& address, int code);
  void on_stagger() { proceed(); }
  void on_failed() { finish(std::move(worst_)); }
  void on_deadline();
  void finish(Connected result);

  const Dialer& dialer_;
  const std::uint16_t port_;
  std::string host_;  // for what is said about it; empty: only addresses are known
  ConnectCallback callback_;
  EventPtr deadline_, stagger_, failed_;
  std::optional<Resolver::Handle> name_;  // while it is being resolved
  std::vector<Address> addresses_;        // in the order of the attempts
  std::size_t next_ = 0;                  // of addresses_
  std::vector<std::unique_ptr<Attempt>> running_;
  Connected worst_;  // what to say if nothing connects
};

void Dialing::start(Resolver& resolver, std::string_view host) {
  host_ = host;
  if (const Resolution* known = resolver.find(host)) return start(*known);
  name_ = resolver.resolve(host, [this](const Resolution& resolution) {
    name_.reset();
    start(resolution);
  });
}

void Dialing::start(const Resolution& resolution) {
  using Status = Resolution::Status;
  switch (resolution.status) {
    case Status::ok: break;
    case Status::bad_name:
      worst_ = failure(ConnectError::bad_name, "\"" + host_ + "\" is not a host name");
      break;
    case Status::not_found:
      worst_ = failure(ConnectError::name_not_found, "no host is known by the name " + host_);
      break;
    case Status::failed:
      worst_ = failure(ConnectError::name_failed, "DNS could not say where " + host_ + " is");
      break;
    case Status::timed_out:
      worst_ =
          failure(ConnectError::name_timed_out, "DNS did not say in time where " + host_ + " is");
      break;
  }
  for (const Address& ip : interleaved(resolution.addresses, dialer_.options_.max_addresses)) {
    const Address address = ip.with_port(port_);
    Verdict verdict = dialer_.filter_ ? dialer_.filter_(address) : Verdict{};
    if (verdict) {
      addresses_.push_back(address);
    } else if (verdict.kind == Verdict::Kind::self) {
      // Whoever names us under one of his addresses means us.
      addresses_.clear();
      worst_ = failure(ConnectError::self, std::move(verdict.why));
      break;
    } else if (worst_) {
      worst_ = failure(ConnectError::denied, std::move(verdict.why));
    }
  }
  if (worst_) worst_ = failure(ConnectError::name_not_found, "the origin has no address");
  proceed();
}

// Starts the next attempt that gets as far as waiting. Failing waits for the loop: this may run
// inside dial().
void Dialing::proceed() {
  while (next_ < addresses_.size()) {
    if (!open(addresses_[next_++])) continue;
    if (next_ < addresses_.size()) start_timer(stagger_.get(), dialer_.options_.stagger);
    return;
  }
  if (running_.empty()) event_active(failed_.get(), EV_TIMEOUT, 0);
}

bool Dialing::open(const Address& address) {
  sockaddr_storage storage;
  const socklen_t length = address.to_sockaddr(storage);
  OwnedSocket socket(::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) {
    note(address, errno);
    return false;
  }
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Success at once is not told apart: the socket is writable then, and the loop says so.
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0 &&
      errno != EINPROGRESS && errno != EINTR) {
    note(address, errno);
    return false;
  }
  auto attempt = std::make_unique<Attempt>(Attempt{this, address, std::move(socket), nullptr});
  attempt->writable = new_event(
      dialer_.base_, attempt->socket.get(), EV_WRITE,
      [](evutil_socket_t, short, void* self) {
        auto& writable = *static_cast<Attempt*>(self);
        writable.dialing->on_writable(writable);
      },
      attempt.get());
  event_add(attempt->writable.get(), nullptr);
  running_.push_back(std::move(attempt));
  return true;
}

void Dialing::on_writable(Attempt& attempt) {
  int code = 0;
  socklen_t length = sizeof code;
  if (getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &code, &length) != 0) code = errno;
  if (code == 0) {
    Connected result;
    result.socket = std::move(attempt.socket);
    result.peer = attempt.address;
    attempt.writable.reset();  // before anybody else puts the descriptor into the loop
    return finish(std::move(result));
  }
  note(attempt.address, code);
  std::erase_if(running_, [&](const auto& one) { return one.get() == &attempt; });
  proceed();  // RFC 8305 §5: a failure does not wait for the delay
}

void Dialing::note(const Address& address, int code) {
  const ConnectError error = kind_of(code);
  if (weight(error) > weight(worst_.error) || weight(worst_.error) == 0)
    worst_ = failure(error, address.text() + ": " + std::generic_category().message(code));
}

void Dialing::on_deadline() {
  if (name_) {
    return finish(
        failure(ConnectError::name_timed_out, "DNS did not say in time where " + host_ + " is"));
  }
  if (running_.empty()) return finish(std::move(worst_));
  finish(failure(ConnectError::timed_out,
                 running_.front()->address.text() + ": no answer within the time to connect"));
}

void Dialing::finish(Connected result) {
  name_.reset();
  running_.clear();
  deadline_.reset();
  stagger_.reset();
  failed_.reset();
  const ConnectCallback run = std::exchange(callback_, nullptr);
  run(std::move(result));
}

DialHandle::DialHandle() = default;
DialHandle::DialHandle(std::unique_ptr<Dialing> dialing) : dialing_(std::move(dialing)) {}
DialHandle::DialHandle(DialHandle&&) noexcept = default;
DialHandle& DialHandle::operator=(DialHandle&&) noexcept = default;
DialHandle::~DialHandle() = default;

Dialer::Dialer(event_base* base, AddressFilter filter, DialOptions options)
    : base_(base), filter_(std::move(filter)), options_(options) {}

DialHandle Dialer::dial(const std::vector<Address>& addresses, std::uint16_t port, Instant deadline,
                        ConnectCallback callback) {
  auto dialing = std::make_unique<Dialing>(*this, port, deadline, std::move(callback));
  dialing->start(Resolution{Resolution::Status::ok, addresses});
  return DialHandle(std::move(dialing));
}

DialHandle Connector::connect(std::string_view host, std::uint16_t port, Instant deadline,
                              ConnectCallback callback) {
  auto dialing = std::make_unique<Dialing>(dialer_, port, deadline, std::move(callback));
  dialing->start(resolver_, host);
  return DialHandle(std::move(dialing));
}

}  // namespace sluice
