#include "proxy/admin/conn.h"

#include <utility>

#include "proxy/admin/loop.h"
#include "proxy/clock.h"

namespace sluice {
namespace {

constexpr Duration kLinger = 2s;  // for the peer to take our last words
constexpr std::size_t kFollowAtOnce = 200;

}  // namespace

AdminConn::AdminConn(AdminLoop& loop, OwnedSocket socket, AdminPeer peer, std::uint64_t id)
    : loop_(loop),
      peer_(peer),
      id_(id),
      stream_(loop.base(), std::move(socket), *this),
      deadline_(loop.base(), *this),
      reader_(Reader::Kind::request, kHeadLimit) {
  set_timeout(kRequestTime);
}

void AdminConn::set_timeout(Duration wait) {
  const Instant now = monotonic_now();
  deadline_.set(now + wait, now);
}

void AdminConn::on_ready() {
  if (state_ == State::gone) return;
  if (!stream_.flush()) return leave();
  if (state_ == State::closing && stream_.backlog() == 0) stream_.shutdown_write();
  read();
}

void AdminConn::on_deadline() {
  if (state_ == State::streaming) {
    if (stream_.backlog() > 0 || !stream_.write(": ping\n\n")) return leave();
    return set_timeout(kPing);
  }
  if (state_ == State::waiting)
    return refuse(admin_error(503, "there was no answer in time; it may still be carried out"));
  leave();
}

// Reads as long as there is something and its turn has come. Followers and those who wait for an
// answer are read for their end only.
void AdminConn::read() {
  char buffer[16 * 1024];
  while (state_ != State::gone) {
    const bool listening =
        (state_ == State::idle || state_ == State::reading) && stream_.backlog() == 0;
    if (listening && !kept_.empty()) {
      const std::string kept = std::exchange(kept_, {});
      if (take(kept)) continue;
      return;
    }
    if (!stream_.readable()) return;
    if (!listening && !stream_.peer_ended() && state_ != State::closing) return;
    std::size_t count = 0;
    switch (stream_.read(buffer, sizeof buffer, count)) {
      case Io::moved:
        if (listening && !take({buffer, count})) return;
        if (!listening && (discarded_ += count) > kDiscardLimit) return leave();
        break;
      case Io::blocked: return;
      case Io::ended:
      case Io::failed: return leave();
    }
  }
}

// False: nothing more is to be read now.
bool AdminConn::take(std::string_view in) {
  if (state_ == State::idle) {
    state_ = State::reading;
    set_timeout(kRequestTime);
  }
  while (true) {
    switch (reader_.next(in)) {
      case Reader::Event::more: return true;
      case Reader::Event::head:
        if (!begin_request()) return false;
        break;
      case Reader::Event::body:
        if (request_.body.size() + reader_.data().size() > kBodyLimit) {
          refuse(admin_error(413, "the body is larger than any order"));
          return false;
        }
        request_.body += reader_.data();
        break;
      case Reader::Event::end:
        kept_ = in;
        judge();
        return state_ == State::idle;
      case Reader::Event::error:
        refuse(admin_error(reader_.fault().status, reader_.fault().why));
        return false;
    }
  }
}

// Judged before its body is read: a stranger's is not even kept.
bool AdminConn::begin_request() {
  const Head& head = reader_.head();
  close_ = head.close;
  auto request = admin_request(head);
  if (!request) {
    refuse(admin_error(400, request.error()));
    return false;
  }
  request_ = std::move(*request);
  if (const auto no = objection(request_, peer_, loop_.token())) {
    refuse(*no);
    return false;
  }
  if (head.framing == Framing::length && head.length > kBodyLimit) {
    refuse(admin_error(413, "the body is larger than any order"));
    return false;
  }
  if (head.framing != Framing::none && head.lists(FieldName::expect, "100-continue"))
    stream_.write("HTTP/1.1 100 Continue\r\n\r\n");
  return true;
}

void AdminConn::judge() {
  state_ = State::waiting;
  set_timeout(kReplyTime);
  if (const auto reply = loop_.answer(request_, id_)) finish(*reply);
}

void AdminConn::finish(const AdminReply& reply) {
  if (state_ != State::waiting) return;
  if (reply.stream && !request_.head_only()) {
    if (!loop_.admit_stream())
      return refuse(admin_error(503, "too many others follow the events already"));
    followed_ = stream_start(request_, loop_.last_event());
    if (!stream_.write(render(reply, false, true, utc_now()))) return leave();
    state_ = State::streaming;
    set_timeout(kPing);
    return follow();
  }
  send(reply);
}

void AdminConn::send(const AdminReply& reply) {
  if (!stream_.write(render(reply, request_.head_only(), close_, utc_now()))) return leave();
  if (close_) return end_gracefully();
  state_ = State::idle;
  request_ = {};
  set_timeout(stream_.backlog() > 0 ? kReplyTime : kIdleTime);
  if (!kept_.empty() || stream_.readable()) stream_.yield();
}

void AdminConn::refuse(const AdminReply& reply) {
  if (!stream_.write(render(reply, request_.head_only(), true, utc_now()))) return leave();
  end_gracefully();
}

// Closing at once would take the answer with it if the peer still sends.
void AdminConn::end_gracefully() {
  state_ = State::closing;
  set_timeout(stream_.backlog() > 0 ? kReplyTime : kLinger);
  stream_.yield();
}

void AdminConn::follow() {
  if (state_ != State::streaming) return;
  std::string text;
  for (const StoredEvent& event : loop_.events_after(followed_, kFollowAtOnce)) {
    text += stream_text(event);
    followed_ = event.sequence;
  }
  if (text.empty()) return;
  if (!stream_.write(text) || stream_.backlog() > kStreamBacklog) return leave();
}

void AdminConn::leave() {
  if (std::exchange(state_, State::gone) != State::gone) loop_.bury(*this);
}

}  // namespace sluice
