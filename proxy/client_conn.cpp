#include "proxy/client_conn.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "proxy/clock.h"
#include "proxy/worker.h"

namespace sluice {
namespace {

constexpr Duration kLinger = 5s;                // for a peer to take the last words
constexpr std::size_t kLingerBytes = 16 << 20;  // that it may still send meanwhile
constexpr Duration kGrace = 1s;  // for the first request of a client that came just before the end
constexpr int kTurn = 64;        // steps before others get a turn
constexpr char kHandshake = 0x16;  // RFC 8446 §5.1: the type of a TLS session's first record
constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";
// Some do so without the alert that would say why.
constexpr const char* kClosed =
    "it closed the connection; if it does not trust the CA of this proxy, run it under `sluice "
    "exec` or give it the CA (`sluice ca export`)";

}  // namespace

ClientConn::ClientConn(Worker& worker, OwnedSocket socket, const Address& peer, bool allowed,
                       ExecRunRef run)
    : worker_(worker),
      stream_(worker.base(), std::move(socket), *this),
      deadline_(worker.base(), *this),
      reader_(Reader::Kind::request, worker.head_limit()),
      exchange_(worker, *this, stream_),
      peer_(peer),
      allowed_(allowed) {
  exchange_.start_run(std::move(run));
  set_timeout(worker.timeouts().idle);
}

ClientConn::ClientConn(Worker& worker, OwnedSocket socket, Inside place)
    : ClientConn(worker, std::move(socket), Address{}, true) {
  exchange_.start_inside(std::move(place));
}

// Also at the end of the program, whatever is under way then.
ClientConn::~ClientConn() {
  if (exchange_.is_answering() || (state_ == State::tunnel && tunnel_)) stream_.reset_on_close();
}

void ClientConn::set_timeout(Duration wait) {
  const Instant now = monotonic_roughly();
  deadline_.set(now + wait, now);
}

void ClientConn::on_ready() {
  if (state_ == State::gone) return;
  if (state_ == State::lingering) return discard();
  if (!stream_.flush()) return leave();
  if (has_left()) return leave();
  pump();
}

// RFC 9110 leaves open what an end without an answer means. A client that closes has left in all
// but a few cases, and working on for nobody costs the origin.
bool ClientConn::has_left() {
  using Phase = Exchange::Phase;
  if (state_ != State::exchange || exchange_.phase() == Phase::done) return false;
  const bool whole = exchange_.request_complete() || exchange_.phase() == Phase::held;
  if (whole) return stream_.peer_left();
  if (exchange_.takes_body()) return false;  // reading tells
  const std::uint64_t missing = reader_.remaining();
  return stream_.falls_short_of(missing - std::min<std::uint64_t>(missing, kept_.size()));
}

// Goes on as long as anything can. What it calls may call it again: that only makes it look twice.
void ClientConn::pump() {
  again_ = true;
  if (pumping_) return;
  pumping_ = true;
  int steps = 0;
  while (again_ && state_ != State::gone) {
    again_ = false;
    while (steps < kTurn && step()) ++steps;
  }
  pumping_ = false;
  if (steps == kTurn) stream_.yield();
}

// One thing at a time; false when there is nothing to do now.
bool ClientConn::step() {
  switch (state_) {
    case State::idle:
    case State::head: return stream_.backlog() == 0 && read_request();
    case State::exchange: {
      using Phase = Exchange::Phase;
      if (exchange_.phase() != Phase::open) return after_exchange();
      // A body goes along with its head if it is here, but the head waits for none: the client may
      // be waiting for a word of the origin (RFC 9110 §10.1.1).
      if (exchange_.takes_body()) {
        if (!exchange_.request_complete() && read_request()) return true;
        if (state_ != State::exchange) return false;
        if (!exchange_.head_sent()) exchange_.flush_request();
      }
      exchange_.pump_response();
      const auto after = exchange_.phase();
      if (after == Phase::open) return !exchange_.head_sent();  // it goes out once more
      return after != Phase::connecting && after != Phase::held;
    }
    case State::entering: return enter();
    case State::tunnel:
    case State::lingering:
    case State::gone: return false;
  }
  return false;
}

// Reads and uses one bufferful. False: there is none.
bool ClientConn::read_request() {
  if (!kept_.empty()) {
    const std::string kept = std::exchange(kept_, {});
    take(kept, true);
    return true;
  }
  if (!stream_.readable()) return false;
  const auto buffer = worker_.scratch();
  std::size_t count = 0;
  switch (stream_.read(buffer.data(), buffer.size(), count)) {
    case Io::moved: take({buffer.data(), count}, false); return true;
    case Io::blocked: return false;
    case Io::ended:
    case Io::failed: leave(); return false;
  }
  return false;
}

void ClientConn::take(std::string_view in, bool was_kept) {
  for (bool more = true; more;) {
    switch (reader_.next(in)) {
      case Reader::Event::more:
        // The time for a head runs from its first byte; empty lines before it are none.
        if (state_ == State::idle && !reader_.between_messages()) {
          state_ = State::head;
          set_timeout(worker_.timeouts().head);
        }
        more = false;
        break;
      case Reader::Event::head:
        state_ = State::exchange;
        served_ = true;
        exchange_.begin(reader_.head(), peer_, allowed_, was_kept);
        // A body waits for its origin; a request without one is complete at once.
        more = exchange_.body_free() || exchange_.takes_body();
        break;
      case Reader::Event::body: exchange_.request_body(reader_.data()); break;
      case Reader::Event::end:
        stream_.rest();
        exchange_.request_end(reader_.trailers());
        more = false;
        break;
      case Reader::Event::error:
        exchange_.refuse_unreadable(reader_.fault());
        state_ = State::exchange;
        more = false;
        break;
    }
  }
  exchange_.flush_request();
  if (!in.empty()) kept_ = in;
  if (has_left()) leave();
}

// The exchange has reached an end of some kind.
bool ClientConn::after_exchange() {
  switch (exchange_.phase()) {
    case Exchange::Phase::done:
      if (exchange_.closes_client() || !exchange_.request_complete()) {
        if (stream_.backlog() == 0) end_gracefully();
        return false;
      }
      exchange_.reset();
      reader_.shed();
      state_ = State::idle;
      set_timeout(stream_.backlog() > 0 ? worker_.timeouts().transfer_idle
                                        : worker_.timeouts().idle);
      return true;
    case Exchange::Phase::broken:
      stream_.reset_on_close();
      leave();
      return false;
    case Exchange::Phase::switched:
      if (stream_.backlog() == 0) open_tunnel();
      return false;
    case Exchange::Phase::intercepted: open_inside(); return state_ == State::entering;
    default: return false;
  }
}

void ClientConn::open_tunnel() {
  if (exchange_.is_tunnel() && !stream_.write(kEstablished)) return leave();
  state_ = State::tunnel;
  set_timeout(worker_.timeouts().transfer_idle);
  tunnel_ = std::make_unique<Tunnel>(worker_, *this, stream_, exchange_.take_origin());
  const std::string from_client = std::exchange(kept_, {});
  const std::string from_origin = exchange_.take_early_bytes();
  tunnel_->start(from_client, from_origin);
}

void ClientConn::open_inside() {
  if (!stream_.write(kEstablished)) return leave();
  state_ = State::entering;
  set_timeout(worker_.timeouts().head);
}

// What the client says first tells whether it speaks TLS. True: it is inside, and requests follow.
bool ClientConn::enter() {
  if (stream_.plain()) {
    if (kept_.empty()) {
      if (!stream_.readable()) return false;
      const auto buffer = worker_.scratch();
      std::size_t count = 0;
      const Io io = stream_.read(buffer.data(), buffer.size(), count);
      if (io == Io::ended || io == Io::failed) leave();
      if (io != Io::moved) return false;
      kept_.assign(buffer.data(), count);
    }
    if (kept_.front() != kHandshake) return enter_plain();
    auto ssl = exchange_.accept_tls();
    stream_.start_tls(std::make_unique<TlsLayer>(std::move(ssl), worker_.tls_buffers()),
                      std::exchange(kept_, {}));
  }
  switch (stream_.handshake()) {
    case Io::blocked: return false;
    case Io::moved: break;
    case Io::ended:
    case Io::failed:
      report_handshake();
      leave();
      return false;
  }
  exchange_.go_inside(true);
  state_ = State::idle;
  set_timeout(worker_.timeouts().idle);
  return true;
}

// Some clients open a tunnel for plain HTTP, too.
bool ClientConn::enter_plain() {
  if (kept_.front() < 'A' || kept_.front() > 'Z') {
    spdlog::info(
        "a client speaks neither TLS nor HTTP inside its tunnel to {}: write intercept = false "
        "into the policy of that host, and it passes unseen",
        exchange_.host());
    leave();
    return false;
  }
  exchange_.go_inside(false);
  state_ = State::idle;
  set_timeout(worker_.timeouts().idle);
  return true;
}

void ClientConn::report_handshake() {
  TlsLayer& tls = *stream_.tls();
  const std::string other = misdirected_name(tls.ssl());
  std::string error = other.empty() ? tls.error() : "it asked for " + other + " inside that tunnel";
  if (error.empty()) error = kClosed;
  const auto told =
      worker_.tls().distrust.explain(exchange_.host(), tls.alert(), error, monotonic_now());
  if (told.text.empty()) return;
  spdlog::warn("{}", told.text);
  if (!told.unknown_ca) return;
  worker_.governor().store().append({utc_now(), EventKind::alert, exchange_.host(), told.text}, {});
}

void ClientConn::on_tunnel_moved() {
  set_timeout(tunnel_->is_doomed() ? kLinger : worker_.timeouts().transfer_idle);
}

void ClientConn::on_tunnel_end() { leave(); }

void ClientConn::on_deadline() {
  switch (state_) {
    case State::idle:
    case State::entering:
    case State::tunnel:
    case State::lingering: return leave();
    case State::head:
      state_ = State::exchange;
      exchange_.refuse_unreadable({408, "the request head did not arrive in time"});
      return pump();
    case State::exchange:
      if (exchange_.phase() == Exchange::Phase::done) return leave();
      exchange_.on_timeout();
      return pump();
    case State::gone: return;
  }
}

// A client knows that a connection it uses again may have ended, and asks anew. One that was just
// accepted would take that for a refusal.
void ClientConn::drain() {
  if (state_ == State::idle && !served_) return set_timeout(kGrace);
  if (state_ == State::idle) leave();
  if (state_ == State::exchange) exchange_.close_after();
}

void ClientConn::cut() {
  if (state_ == State::tunnel) {
    exchange_.note("emergency-stop");
    stream_.reset_on_close();
    return leave();
  }
  if (state_ != State::exchange) return;  // the next request is refused
  exchange_.cut();
  pump();
}

// Ends our side and waits a moment for the client's: a close with unread bytes would destroy the
// answer on its way (RFC 9112 §9.6).
void ClientConn::end_gracefully() {
  if (exchange_.request_complete() && kept_.empty() && !stream_.readable()) return leave();
  exchange_.reset();
  stream_.shutdown_write();
  state_ = State::lingering;
  kept_ = {};
  set_timeout(kLinger);
  linger_left_ = kLingerBytes;
  discard();
}

void ClientConn::discard() {
  const auto buffer = worker_.scratch();
  std::size_t count = 0;
  while (stream_.readable()) {
    const Io io = stream_.read(buffer.data(), buffer.size(), count);
    if (io == Io::ended || io == Io::failed) return leave();
    if (io == Io::blocked) return;
    if (count >= linger_left_) return leave();
    linger_left_ -= count;
  }
}

void ClientConn::leave() {
  if (state_ == State::gone) return;
  if (tunnel_) exchange_.log_tunnel(tunnel_->from_client(), tunnel_->from_origin());
  if (exchange_.is_answering()) stream_.reset_on_close();
  state_ = State::gone;
  exchange_.abandon();
  deadline_.clear();
  worker_.bury(*this);
}

}  // namespace sluice
