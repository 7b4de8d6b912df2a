// The third part of an exchange: the response on its way to the client.
#include <algorithm>

#include "proxy/clock.h"
#include "proxy/exchange.h"
#include "proxy/http/connection_auth.h"
#include "proxy/worker.h"

namespace sluice {
namespace {

// WHATWG HTML §9.2, server-sent events: its end says nothing, it may be days away.
bool never_ends(const Head& response) {
  const Field* type = response.find(FieldName::content_type);
  if (type == nullptr) return false;
  return equals_ignoring_case(trim(type->value.substr(0, type->value.find(';'))),
                              "text/event-stream");
}

constexpr int kTurn = 64;  // moves of bytes before others get a turn
constexpr int kMostInterims = 100;
constexpr std::uint64_t kSpliceFrom = 256 * 1024;  // bytes still to come; fewer are copied

}  // namespace

void Exchange::on_ready() {
  if (!origin_) return;
  if (phase_ == Phase::connecting) return secure_origin();
  origin_->stream.flush();  // a broken write shows when reading
  pump_response();
  owner_.on_exchange();
}

void Exchange::pump_response() {
  for (int moves = 0; phase_ == Phase::open && origin_ && client_.backlog() == 0; ++moves) {
    if (moves == kTurn) return origin_->stream.yield();
    if (pipe_ || (origin_->reader.remaining() >= kSpliceFrom && !copies_ && watch_.done() &&
                  origin_->stream.plain() && client_.plain())) {
      if (!splice_response()) return;
      continue;
    }
    if (!origin_->stream.readable()) return;
    const auto buffer = worker_.scratch();
    std::size_t count = 0;
    switch (origin_->stream.read(buffer.data(), buffer.size(), count)) {
      case Io::blocked: return;
      case Io::ended: return on_origin_gone(true);
      case Io::failed: return on_origin_gone(false);
      case Io::moved: break;
    }
    heard_ = true;
    std::string_view in(buffer.data(), count);
    const bool complete = read_response(in);
    Gather& out = worker_.to_client();
    const bool sent = out.empty() || client_.write(out.pieces());
    out.clear();
    if (!sent) {
      phase_ = Phase::broken;
      return;
    }
    if (response_begun_ && own_time_.running()) count_overhead(own_time_);
    if (complete) return finish_response(!in.empty());
    if (phase_ == Phase::open && response_begun_) progress_response();
  }
}

// Turns what was read into what the client gets. True: the response is complete.
bool Exchange::read_response(std::string_view& in) {
  Reader& reader = origin_->reader;
  for (;;) {
    switch (reader.next(in)) {
      case Reader::Event::more: return false;
      case Reader::Event::head:
        if (!begin_response(reader.head(), in)) return false;
        if (phase_ == Phase::switched) {
          early_ = in;
          return false;
        }
        break;
      case Reader::Event::body:
        entry_.sent += reader.data().size();
        if (!watch_.done()) watch(reader.data());
        worker_.to_client().body(reader.data(), response_framing_);
        break;
      case Reader::Event::end:
        if (!response_begun_) break;  // a 1xx: the final response follows
        worker_.to_client().end(reader.trailers(), response_framing_);
        return true;
      case Reader::Event::error: fail_response(); return false;
    }
  }
}

bool Exchange::begin_response(const Head& head, std::string_view body_at_hand) {
  ResponsePlan plan;
  std::string& text = worker_.to_client().text();
  if (head.status == 101 && !switches_as_asked(head, upgrade_)) {
    fail_response("it switches to a protocol that nobody asked for");
    return false;
  }
  if (head.status < 200) {
    if (++interims_ > kMostInterims) {
      fail_response("there is no end of interim responses");
      return false;
    }
    plan.upgrade = head.status == 101;
    if (plan.upgrade) {
      phase_ = Phase::switched;
      entry_.status = 101;
      permit_.answered(head, std::nullopt, *this, worker_);
      permit_.scanned();
    }
    // RFC 9110 §15.2: HTTP/1.0 knows no interim responses.
    if (client_minor_ >= 1) {
      write_response(text, head, plan, worker_.pseudonym(), worker_.date());
      worker_.to_client().seal();
    }
    return true;
  }
  own_time_.go_on(monotonic_now());
  auto judgement = judge(head, body_at_hand);
  if (send_again(judgement)) return false;
  wait_for_store(judgement);
  watch_ = BodyWatch(permit_.scan(head), head);
  if (watch_.done() || never_ends(head)) permit_.scanned();
  plan.framing = head.framing;
  if (head.framing == Framing::chunked || head.framing == Framing::until_close) {
    plan.framing = client_minor_ >= 1 ? Framing::chunked : Framing::until_close;
  }
  close_client_ |= !request_complete_ || plan.framing == Framing::until_close || worker_.draining();
  plan.close = close_client_;
  plan.upgrade = head.status == 426 && client_minor_ >= 1;
  origin_->personal |= personal_ || (head.status == 401 && authenticates_connection(head));
  write_response(text, head, plan, worker_.pseudonym(), worker_.date());
  worker_.to_client().seal();
  response_begun_ = true;
  response_framing_ = plan.framing;
  entry_.status = head.status;
  if (worker_.access_log() != nullptr) entry_.to_first_byte = monotonic_now() - entry_.start;
  return true;
}

// A page that came with the head of a refusal has its say first: a block is not to be met with one
// more request. What comes later amends the judgement.
Judgement Exchange::judge(const Head& head, std::string_view body_at_hand) {
  std::optional<std::size_t> marker;
  if (head.status >= 400) marker = marker_at_hand(permit_.scan(head), head, body_at_hand);
  return permit_.answered(head, marker, *this, worker_);
}

// A long body of known length moves inside the kernel. False: nothing more can move now.
bool Exchange::splice_response() {
  Reader& reader = origin_->reader;
  if (!pipe_) pipe_ = worker_.pipes().take();
  copies_ = pipe_ == nullptr;  // no descriptors are left for one
  if (copies_) return true;
  std::size_t count = 0;
  if (pipe_->empty()) {
    if (!origin_->stream.readable()) return false;
    const auto limit = std::min<std::uint64_t>(reader.remaining(), pipe_->capacity());
    switch (origin_->stream.read_into(*pipe_, limit, count)) {
      case Io::moved: break;
      case Io::blocked: return false;
      case Io::ended:
      case Io::failed: on_origin_gone(false); return false;
    }
    reader.moved(count);
    entry_.sent += count;
  }
  while (!pipe_->empty()) {
    if (!client_.writable()) return false;
    switch (client_.write_from(*pipe_, count)) {
      case Io::moved: break;
      case Io::blocked: return false;
      case Io::ended:
      case Io::failed: phase_ = Phase::broken; return false;
    }
  }
  progress(worker_.timeouts().transfer_idle);
  if (reader.remaining() > 0) return true;
  worker_.pipes().give_back(std::move(pipe_));
  std::string_view none;
  reader.next(none);
  finish_response(false);
  return false;
}

void Exchange::finish_response(bool surplus) {
  const Head& head = origin_->reader.head();
  const bool reusable = !surplus && !head.close && request_complete_ &&
                        origin_->stream.backlog() == 0 && head.framing != Framing::until_close;
  origin_->stream.rest();
  if (reusable && origin_->personal) {
    if (own_) worker_.bury(std::move(own_));
    own_ = std::move(origin_);
    own_->reader.shed();
  } else if (reusable) {
    worker_.pool().rest(std::move(origin_), monotonic_roughly());
  } else {
    drop_origin();
  }
  phase_ = Phase::done;
  permit_.done();
  write_log();
}

// The origin's connection ended, cleanly or not.
void Exchange::on_origin_gone(bool cleanly) {
  if (response_begun_) {
    const bool cut = !cleanly || origin_->stream.cut_off();
    if (cut || origin_->reader.finish() != Reader::Event::end) return fail_response();
    worker_.to_client().end({}, response_framing_);
    if (!client_.write(worker_.to_client().pieces())) phase_ = Phase::broken;
    worker_.to_client().clear();
    drop_origin();
    if (phase_ == Phase::open) phase_ = Phase::done;
    permit_.done();
    return write_log();
  }
  if (is_stale()) {
    drop_origin();
    head_sent_ = false;
    idempotent_ = false;  // once is enough
    fresh_ = true;
    // The origin may have counted it, and charged for it, before it closed.
    if (permit_.counts()) {
      return enter(worker_.governor().admit_again(std::move(permit_), *this, worker_));
    }
    permit_.sent(false);
    return find_origin();
  }
  // RFC 8446 §4.4.2.4: that a client certificate is missing, TLS 1.3 only says after the handshake.
  if (!heard_ && origin_->stream.tls() != nullptr && origin_->stream.tls()->alert() >= 0) {
    return fail_handshake(Io::failed);
  }
  auto judgement = permit_.failed(OutcomeKind::network, false, *this, worker_);
  if (send_again(judgement)) return;
  wait_for_store(judgement);
  refuse({502, "origin-closed", "connection_terminated",
          "the origin closed the connection without an answer", target_.host});
}

void Exchange::count_overhead(OwnTime& time) { worker_.tally().added(time.stop(monotonic_now())); }

void Exchange::watch(std::string_view bytes) {
  if (const auto marker = watch_.feed(bytes)) {
    auto judgement = permit_.found(*marker, *this, worker_);
    watch_ = {};
    wait_for_store(judgement);
  } else if (watch_.done()) {
    permit_.scanned();
  }
}

// The response cannot be used, or not to its end.
void Exchange::fail_response(std::string_view why) {
  if (response_begun_) {
    // The client sees it by itself: there is nothing to keep back for the store.
    [[maybe_unused]] const auto judgement =
        permit_.failed(OutcomeKind::network, false, *this, worker_);
    drop_origin();
    phase_ = Phase::broken;
    return;
  }
  worker_.to_client().clear();
  auto judgement = permit_.failed(OutcomeKind::network, false, *this, worker_);
  wait_for_store(judgement);
  const Fault& fault = origin_->reader.fault();
  if (why.empty()) why = fault.why;
  refuse({502, "origin-closed",
          fault.status == 431 ? "http_response_header_section_size" : "http_protocol_error",
          "the origin's answer is no valid HTTP" + (why.empty() ? "" : ": " + std::string(why)),
          target_.host});
}

}  // namespace sluice
