#include "proxy/net/stream.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "proxy/net/pipe.h"
#include "proxy/tls/layer.h"

namespace sluice {
namespace {

constexpr std::size_t kPiecesAtOnce = 64;

// One piece is what most writes have, and cheaper to hand over alone.
ssize_t send_some(int fd, std::span<iovec> pieces) {
  if (pieces.size() == 1) return send(fd, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL);
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return sendmsg(fd, &message, MSG_NOSIGNAL);
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Stream::Stream(event_base* base, OwnedSocket socket, Handler& handler)
    : socket_(std::move(socket)), handler_(&handler) {
  const auto trampoline = [](int, short what, void* self) {
    static_cast<Stream*>(self)->on_event(what);
  };
  event_assign(&event_, base, fd(), EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST, trampoline,
               this);
  event_add(&event_, nullptr);
}

Stream::~Stream() {
  if (backlog() > 0) reset_on_close();  // what the peer has is not all it should get
  event_del(&event_);
  if (again_) event_del(again_.get());
  if (tls_ && !resets_ && backlog() == 0) {
    tls_->close();
    send_outbox();
  }
}

void Stream::on_event(short what) {
  if ((what & (EV_READ | EV_CLOSED)) != 0) readable_ = news_ = true;
  if ((what & EV_WRITE) != 0) writable_ = true;
  if ((what & EV_CLOSED) != 0) peer_ended_ = true;
  // libevent takes an event whose timer rang off its socket, persistent or not.
  if ((what & EV_TIMEOUT) != 0) event_add(&event_, nullptr);
  handler_->on_ready();
}

// Timers run after the sockets that are ready, so this comes round again behind everyone else. It
// has an event of its own: a time-out would take the socket's out of the loop.
void Stream::yield() {
  if (!again_) {
    again_ = std::make_unique<event>();
    evtimer_assign(
        again_.get(), event_get_base(&event_),
        [](int, short, void* self) { static_cast<Stream*>(self)->handler_->on_ready(); }, this);
  }
  const timeval at_once{0, 0};
  event_add(again_.get(), &at_once);
}

// libevent tells an error only as "readable and writable".
bool Stream::peer_left() {
  if (peer_ended_) return true;
  if (!std::exchange(news_, false)) return false;
  pollfd state{fd(), POLLRDHUP, 0};
  if (poll(&state, 1, 0) > 0) peer_ended_ = (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  return peer_ended_;
}

bool Stream::falls_short_of(std::uint64_t wanted) {
  if (!std::exchange(news_, false) && !peer_ended_) return false;
  pollfd state{fd(), POLLRDHUP, 0};
  if (poll(&state, 1, 0) <= 0) return false;
  if ((state.revents & (POLLHUP | POLLERR)) != 0) return true;
  peer_ended_ = true;
  int unread = 0;
  return plain() && ioctl(fd(), FIONREAD, &unread) == 0 &&
         static_cast<std::uint64_t>(unread) < wanted;
}

bool Stream::was_reset() {
  if (!std::exchange(news_, false)) return false;
  pollfd state{fd(), 0, 0};
  return poll(&state, 1, 0) > 0 && (state.revents & POLLERR) != 0;
}

bool Stream::is_quiet() const {
  pollfd state{fd(), POLLIN | POLLRDHUP, 0};
  return poll(&state, 1, 0) == 0;
}

Io Stream::read(char* buffer, std::size_t size, std::size_t& count) {
  news_ = false;
  return tls_ ? decrypt(buffer, size, count) : receive(buffer, size, count);
}

Io Stream::receive(char* buffer, std::size_t size, std::size_t& count) {
  const ssize_t n = recv(fd(), buffer, size, 0);
  if (n > 0) {
    count = static_cast<std::size_t>(n);
    emptied_ = count < size;
    return Io::moved;
  }
  if (n < 0 && errno == EINTR) return receive(buffer, size, count);
  readable_ = false;
  if (n < 0 && would_block()) return Io::blocked;
  peer_ended_ = true;
  return n == 0 ? Io::ended : Io::failed;
}

void Stream::start_tls(std::unique_ptr<TlsLayer> layer, std::string_view early) {
  tls_ = std::move(layer);
  tls_->keep(early);
}

Io Stream::handshake() {
  for (;;) {
    const Io io = tls_->handshake();
    send_outbox();  // an alert, too; a broken write shows when reading
    if (io != Io::blocked) {
      readable_ |= tls_->has_unread();
      return io;
    }
    if (!readable_) return Io::blocked;
    const std::span<char> intake = tls_->intake();
    std::size_t count = 0;
    const Io received = receive(intake.data(), intake.size(), count);
    if (received != Io::moved) return received;
    tls_->feed({intake.data(), count});
  }
}

// One receive as a rule, and the plain text of all of it: what a record holds is less than it.
Io Stream::decrypt(char* buffer, std::size_t size, std::size_t& count) {
  const std::span<char> intake = tls_->intake();
  const std::size_t limit = size > kRecordLimit ? size - kRecordLimit : size;
  for (;;) {
    const Io received = receive(intake.data(), std::min(intake.size(), limit), count);
    if (received == Io::moved) tls_->feed({intake.data(), count});
    const Io io = tls_->read(buffer, size, count);
    if (!tls_->outbox().empty()) send_outbox();
    if (io != Io::blocked) {
      // Whatever is left inside the layer raises no event of its own.
      if (tls_->has_more()) {
        readable_ = true;
        emptied_ = false;
      }
      peer_ended_ |= io == Io::ended;
      return io;
    }
    if (received == Io::moved && readable_) continue;
    cut_off_ |= received == Io::ended;
    return received == Io::moved ? Io::blocked : received;
  }
}

bool Stream::send_outbox() {
  std::string& outbox = tls_->outbox();
  if (outbox.empty()) return true;
  iovec piece{outbox.data(), outbox.size()};
  const bool sent = send_pieces({&piece, 1});
  outbox.clear();
  return sent;
}

Io Stream::read_into(Pipe& pipe, std::size_t limit, std::size_t& count) {
  news_ = false;
  const ssize_t n =
      splice(fd(), nullptr, pipe.in(), nullptr, limit, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n > 0) {
    count = static_cast<std::size_t>(n);
    emptied_ = false;
    pipe.filled(count);
    return Io::moved;
  }
  if (n < 0 && would_block() && !pipe.empty()) return Io::blocked;  // the pipe may be full instead
  readable_ = false;
  if (n == 0) {
    peer_ended_ = true;
    return Io::ended;
  }
  return would_block() ? Io::blocked : Io::failed;
}

Io Stream::write_from(Pipe& pipe, std::size_t& count) {
  const ssize_t n =
      splice(pipe.out(), nullptr, fd(), nullptr, pipe.held(), SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n > 0) {
    count = static_cast<std::size_t>(n);
    pipe.drained(count);
    return Io::moved;
  }
  if (n < 0 && would_block()) {
    writable_ = false;
    return Io::blocked;
  }
  return Io::failed;
}

bool Stream::write(std::string_view bytes) {
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  return write({&piece, 1});
}

bool Stream::write(std::span<iovec> pieces) {
  if (!tls_) return send_pieces(pieces);
  return tls_->write(pieces) && send_outbox();
}

bool Stream::send_pieces(std::span<iovec> pieces) {
  bool direct = backlog() == 0 && writable_ && !corked_;
  while (direct && !pieces.empty()) {
    ssize_t n = send_some(fd(), pieces.first(std::min(pieces.size(), kPiecesAtOnce)));
    if (n < 0) {
      if (!would_block()) return false;
      writable_ = false;
      break;
    }
    for (auto left = static_cast<std::size_t>(n); !pieces.empty() && left >= pieces[0].iov_len;) {
      left -= pieces[0].iov_len;
      pieces = pieces.subspan(1);
      n = static_cast<ssize_t>(left);
    }
    if (n > 0 && !pieces.empty()) {
      pieces[0].iov_base = static_cast<char*>(pieces[0].iov_base) + n;
      pieces[0].iov_len -= static_cast<std::size_t>(n);
      direct = writable_ = false;  // a short write has filled the socket
    }
  }
  for (const iovec& piece : pieces) {
    backlog_.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  }
  return true;
}

bool Stream::uncork() {
  corked_ = false;
  return flush();
}

bool Stream::flush() {
  if (backlog() == 0 || !writable_ || corked_) return true;
  const ssize_t n = send(fd(), backlog_.data() + sent_, backlog(), MSG_NOSIGNAL);
  if (n < 0) {
    writable_ = false;
    return would_block();
  }
  sent_ += static_cast<std::size_t>(n);
  if (backlog() > 0) {
    writable_ = false;
    return true;
  }
  // Idle connections are many: none keeps a buffer.
  backlog_ = {};
  sent_ = 0;
  if (shut_later_) shutdown(fd(), SHUT_WR);
  return true;
}

std::size_t Stream::unsent() const {
  int count = 0;
  ioctl(fd(), SIOCOUTQ, &count);
  return backlog() + static_cast<std::size_t>(count);
}

void Stream::shutdown_write() {
  if (tls_) {
    tls_->close();
    send_outbox();
    if (backlog() > 0) {
      shut_later_ = true;
      return;
    }
  }
  shutdown(fd(), SHUT_WR);
}

void Stream::reset_on_close() {
  resets_ = true;
  const linger at_once{1, 0};
  setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace sluice
