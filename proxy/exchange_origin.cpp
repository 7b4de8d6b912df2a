// The second part of an exchange: a connection to the origin, the request on its way there, and
// whether it may go there once more.
#include <algorithm>

#include "proxy/clock.h"
#include "proxy/connect_refusal.h"
#include "proxy/exchange.h"
#include "proxy/worker.h"

namespace sluice {
// Whoever has another idea of whom to trust uses another connection.
std::string Exchange::origin_key() const {
  std::string key = target_.host + ':' + std::to_string(target_.port);
  if (tls_context_) key.append("/").append(tls_context_->name);
  return key;
}

void Exchange::take_resting() {
  std::string key = origin_key();
  if (own_ && own_->key == key) {
    if (own_->stream.is_quiet()) {
      origin_ = std::move(own_);
      origin_->reused = true;
    } else {
      worker_.bury(std::move(own_));
    }
  }
  if (!origin_) origin_ = worker_.pool().take(key, *this);
}

void Exchange::find_origin() {
  if (!tunnel_ && !fresh_) take_resting();
  // What cannot be sent twice, or would count twice, does not go out on a connection that the
  // origin has just closed; and what comes right behind an answer, not on one that has more to say.
  const bool once = !(idempotent_ && body_free_) || permit_.counts();
  if (origin_ && (once || pipelined_) && !origin_->stream.is_quiet()) drop_origin();
  if (origin_) {
    phase_ = Phase::open;
    return progress(worker_.timeouts().transfer_idle);
  }
  phase_ = Phase::connecting;
  progress(kUnlimited);  // the dialer tells when it took too long
  const Instant now = monotonic_now();
  const Instant deadline = now + worker_.timeouts().connect;
  own_time_.wait(now);
  dial_ = worker_.connector().connect(
      target_.host, target_.port, deadline,
      [this](Connected connected) { on_connected(std::move(connected)); });
}

void Exchange::on_connected(Connected connected) {
  if (!connected) {
    auto judgement = permit_.failed(blame(connected.error), !head_sent_, *this, worker_);
    if (!send_again(judgement)) {
      wait_for_store(judgement);
      refuse(connect_refusal(connected));
    }
    return owner_.on_exchange();
  }
  origin_ = std::make_unique<OriginConn>(worker_.base(), std::move(connected.socket), *this,
                                         origin_key(), worker_.head_limit(), monotonic_now());
  if (tls_context_) {
    origin_->stream.start_tls(
        std::make_unique<TlsLayer>(
            worker_.sessions().connect(*tls_context_, origin_->key, target_.host),
            worker_.tls_buffers()),
        {});
    progress(worker_.timeouts().connect);
    return secure_origin();
  }
  own_time_.go_on(monotonic_now());
  phase_ = tunnel_ ? Phase::switched : Phase::open;
  if (tunnel_) {
    permit_.connected();
    count_overhead(own_time_);
  }
  progress(worker_.timeouts().transfer_idle);
  owner_.on_exchange();
}

void Exchange::secure_origin() {
  switch (origin_->stream.handshake()) {
    case Io::blocked: return;
    case Io::moved:
      phase_ = Phase::open;
      own_time_.go_on(monotonic_now());
      progress(worker_.timeouts().transfer_idle);
      break;
    case Io::ended: fail_handshake(Io::ended); break;
    case Io::failed: fail_handshake(Io::failed); break;
  }
  owner_.on_exchange();
}

// A certificate that does not hold says nothing about how busy the origin is, so it does not count.
void Exchange::fail_handshake(Io how) {
  TlsLayer& tls = *origin_->stream.tls();
  const std::string why = how == Io::ended ? "it closed the connection" : tls.error();
  const bool distrusted = SSL_get_verify_result(tls.ssl()) != X509_V_OK;
  const bool refused = tls.alert() >= 0;
  auto judgement = permit_.failed(distrusted || refused ? OutcomeKind::local : OutcomeKind::network,
                                  true, *this, worker_);
  if (!distrusted && !refused && send_again(judgement)) return;
  wait_for_store(judgement);
  refuse({502, "tls",
          distrusted ? "tls_certificate_error"
          : refused  ? "tls_alert_received"
                     : "tls_protocol_error",
          (distrusted ? "the certificate of " + target_.host + " is not accepted: "
                      : "no TLS session with " + target_.host + ": ") +
              (why.empty() ? "the connection broke" : why) +
              (tls.alert() == SSL_AD_CERTIFICATE_REQUIRED
                   ? "; a policy for it must name client_cert and client_key"
                   : ""),
          target_.host});
}

bool Exchange::takes_body() const {
  return phase_ == Phase::open && origin_ != nullptr && origin_->stream.backlog() == 0;
}

void Exchange::request_body(std::string_view bytes) {
  if (phase_ != Phase::open) return;
  entry_.received += bytes.size();
  body_sent_ = true;
  if (keeps_body_) replay_ += bytes;
  worker_.to_origin().body(bytes, request_framing_);
}

void Exchange::request_end(const std::string& trailers) {
  request_complete_ = true;
  if (phase_ != Phase::open) return;
  worker_.to_origin().end(trailers, request_framing_);
}

void Exchange::flush_request() {
  Gather& out = worker_.to_origin();
  if (phase_ != Phase::open || !origin_) return out.clear();
  if (head_sent_ && out.empty()) return;
  bool sent;
  if (head_sent_) {
    sent = origin_->stream.write(out.pieces());
  } else {
    head_sent_ = true;
    if (body_sent_ && out.empty()) out.body(replay_, request_framing_);  // the second time
    origin_->reader.expect_no_body(head_method_);
    sent = out.empty() ? origin_->stream.write(head_bytes_)
                       : origin_->stream.write(out.pieces_behind(head_bytes_));
    if (!sent && !body_sent_) idempotent_ = true;  // nothing of it went out
    permit_.sent(sent || body_sent_);
  }
  out.clear();
  if (!sent) {
    // An early answer may be waiting behind a broken write: reading tells.
    if (origin_->stream.is_quiet()) on_origin_gone(false);
    return;
  }
  const Instant now = monotonic_now();
  if (!response_begun_) own_time_.wait(now);
  if (request_complete_ && !response_begun_) {
    const auto patience = permit_.patience(now);
    progress(std::min(worker_.timeouts().first_byte, patience.value_or(kUnlimited)));
  } else if (response_begun_) {
    progress_response();
  } else {
    progress(worker_.timeouts().transfer_idle);
  }
}

// RFC 9112 §9.3.1: a connection that had rested may have been closed by the origin while the
// request was on its way. A fresh connection that does so has answered, in its manner.
bool Exchange::is_stale() const { return origin_->reused && idempotent_ && !body_sent_ && !heard_; }

// All of the request is at hand, or none of it has left.
bool Exchange::can_replay() const {
  return !head_sent_ || (request_complete_ && (!body_sent_ || keeps_body_));
}

// True: the answer is thrown away, and the request waits for another turn.
bool Exchange::send_again(const Judgement& judgement) {
  if (!judgement.retry || !can_replay() || !upgrade_.empty()) return false;
  drop_origin();
  worker_.to_client().clear();
  head_sent_ = false;
  enter(worker_.governor().admit_again(std::move(permit_), *this, worker_));
  return true;
}

}  // namespace sluice
