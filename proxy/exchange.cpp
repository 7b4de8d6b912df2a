#include "proxy/exchange.h"

#include <algorithm>

#include "proxy/clock.h"
#include "proxy/shed.h"
#include "proxy/worker.h"

namespace sluice {
namespace {

// RFC 9110 §9.2.2.
bool is_idempotent(std::string_view method) {
  for (const std::string_view safe : {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}) {
    if (method == safe) return true;
  }
  return false;
}

bool is_body_free(const Head& head) {
  return head.framing == Framing::none || (head.framing == Framing::length && head.length == 0);
}

// Why the request as such makes no sense; empty: it does.
std::string_view nonsense(const Head& head) {
  if (!has_valid_host(head)) return "the request has not exactly one Host field that names a host";
  if (head.method == "TRACE" && !is_body_free(head)) return "TRACE has no body";      // §9.3.8
  if (head.method == "CONNECT" && !is_body_free(head)) return "CONNECT has no body";  // §9.3.6
  if (head.target == "*" && head.method != "OPTIONS") {
    return "the request target * is for OPTIONS only";  // RFC 9112 §3.2.4
  }
  if (!has_valid_max_forwards(head)) return "there are two Max-Forwards fields";
  return {};
}

}  // namespace

Exchange::Exchange(Worker& worker, Owner& owner, Stream& client)
    : worker_(worker), owner_(owner), client_(client), number_(worker.next_id()) {}

Exchange::~Exchange() { abandon(); }

void Exchange::reset() {
  phase_ = Phase::idle;
  shed_room(head_bytes_);
  shed_room(replay_);
  upgrade_.clear();
  watch_ = {};
  request_complete_ = true;
  head_sent_ = body_sent_ = heard_ = response_begun_ = close_client_ = tunnel_ = copies_ = false;
  interims_ = 0;
}

void Exchange::begin(const Head& head, const Address& peer, bool client_allowed, bool pipelined) {
  own_time_.start(monotonic_now());
  client_hash_ = AddressHash{}(peer.with_port(0));
  format_ = preferred_format(head);
  client_minor_ = head.minor;
  request_framing_ = head.framing;
  request_complete_ = false;
  body_free_ = is_body_free(head);
  close_client_ = head.close || worker_.draining();
  head_method_ = head.method == "HEAD";
  idempotent_ = is_idempotent(head.method);
  fresh_ = false;
  pipelined_ = pipelined;
  tunnel_ = head.method == "CONNECT";
  if (worker_.access_log() != nullptr) {
    entry_ = {};
    entry_.id = worker_.next_id();
    entry_.client = peer.ip_text();
    entry_.method = head.method;
    entry_.start = monotonic_now();
  }
  const bool stopped = worker_.emergency().in_force();
  if (stopped && !tunnel_) return refuse(worker_.emergency().refusal());
  if (!client_allowed) {
    return refuse({403, "client-denied", "http_request_denied",
                   "this address is not in access.clients of the proxy"});
  }
  if (const std::string_view why = nonsense(head); !why.empty()) {
    close_client_ = true;
    return refuse({400, "bad-request", "http_request_error", std::string(why)});
  }
  if (!inside_ && !tunnel_ && is_origin_form(head.target)) return answer_for_ourselves(head);
  if (!find_target(head)) return;
  if (worker_.access_log() != nullptr) {
    entry_.host = target_.authority;
    entry_.path = target_.path.substr(0, target_.path.find('?'));
  }
  if (!inside_) identify(head);
  if (!choose_route()) return;
  // What we look into is refused inside, where the client can read why.
  if (stopped && !intercept_) return refuse(worker_.emergency().refusal());
  if (check_user(head)) admit(head);
}

// What the answer taught must be written down before the client sees it (DESIGN §4).
void Exchange::wait_for_store(Judgement& judgement) {
  if (!judgement.wait) return;
  durable_ = std::move(judgement.wait);
  if (own_time_.running()) corked_time_ = own_time_;  // else it waits for a second time
  own_time_ = {};
  client_.cork();
}

void Exchange::on_durable() {
  durable_.reset();
  if (corked_time_.running()) count_overhead(corked_time_);
  if (!client_.uncork()) phase_ = Phase::broken;
  owner_.on_exchange();
}

void Exchange::refuse_unreadable(const Fault& fault) {
  if (response_begun_) {
    drop_origin();
    phase_ = Phase::broken;
    return;
  }
  if (phase_ == Phase::idle) target_ = {};  // that of the request before it
  if (phase_ == Phase::idle && worker_.access_log() != nullptr) {
    entry_ = {};
    entry_.id = worker_.next_id();
    entry_.start = monotonic_now();
  }
  close_client_ = true;
  refuse({fault.status,
          fault.status == 408 ? "head-timeout" : "bad-request",
          "http_request_error",
          std::string(fault.why),
          {}});
}

void Exchange::on_timeout() {
  if (phase_ == Phase::checking) {
    return refuse({503,
                   "overloaded",
                   "proxy_internal_error",
                   "to check the password, or to make a certificate, took too long",
                   {},
                   1});
  }
  if (response_begun_ && permit_.patience(monotonic_now()) == Duration(0)) {
    permit_.scanned();
    return progress(worker_.timeouts().transfer_idle);
  }
  if (response_begun_) {
    // Unless it is the client that does not go on.
    const bool silent = client_.backlog() == 0;
    if (silent) permit_.failed(OutcomeKind::network, false, *this, worker_);
    drop_origin();
    phase_ = Phase::broken;
    return;
  }
  if (!request_complete_ && head_sent_) {
    permit_.failed(OutcomeKind::local, false, *this, worker_);
    return refuse({408, "request-timeout", "http_request_error", "the request body stopped coming",
                   target_.host});
  }
  const bool shaking_hands = phase_ == Phase::connecting && origin_ != nullptr;
  auto judgement = permit_.failed(OutcomeKind::network, shaking_hands, *this, worker_);
  if (send_again(judgement)) return;
  wait_for_store(judgement);
  if (shaking_hands) {
    return refuse({504, "connect-timeout", "connection_timeout",
                   "the origin did not finish the TLS handshake in time", target_.host});
  }
  refuse({504, "origin-timeout", "http_response_timeout", "the origin did not answer in time",
          target_.host});
}

void Exchange::cut() {
  if (phase_ == Phase::idle || phase_ == Phase::done || phase_ == Phase::broken) return;
  permit_.done();
  note("emergency-stop");
  if (!response_begun_ && phase_ != Phase::switched) return refuse(worker_.emergency().refusal());
  stop_waiting();
  drop_origin();
  phase_ = Phase::broken;
}

void Exchange::refuse(Refusal refusal) {
  if (refusal.host.empty()) refusal.host = target_.host;
  close_client_ |= tunnel_;  // what follows a refused CONNECT is no request
  entry_.reason = refusal.reason;
  worker_.tally().refused(refusal.reason);
  respond(render(refusal, reply_options()), refusal.status);
}

ReplyOptions Exchange::reply_options() {
  // Nobody will read the body, so that the next request could not be found.
  close_client_ |= !(request_complete_ || body_free_) || worker_.draining();
  return {format_, head_method_, close_client_, worker_.date()};
}

void Exchange::respond(std::string_view reply, std::uint16_t status) {
  stop_waiting();
  drop_origin();
  permit_.done();
  entry_.status = status;
  phase_ = client_.write(reply) ? Phase::done : Phase::broken;
  if (phase_ == Phase::done) write_log();  // else the client has left, and abandon() says so
}

void Exchange::abandon() {
  if (phase_ != Phase::idle && phase_ != Phase::done) {
    if (entry_.reason.empty()) entry_.reason = phase_ == Phase::broken ? "cut-off" : "client-left";
    if (phase_ != Phase::switched) write_log();
  }
  stop_waiting();
  drop_origin();
  if (own_) worker_.bury(std::move(own_));
  durable_.reset();
  permit_ = {};
  phase_ = Phase::idle;
}

// For whatever would let the request go: nobody will be told any more.
void Exchange::stop_waiting() {
  user_check_.reset();
  robots_.reset();
  robots_question_.reset();
  minting_.reset();
  end_hold();
  errand_ = {};
}

void Exchange::drop_origin() {
  dial_ = {};
  if (pipe_) pipe_.reset();
  if (origin_) worker_.bury(std::move(origin_));
}

void Exchange::progress(Duration wait) { owner_.set_timeout(wait); }

// By the rough clock, which set_timeout() reads: then the deadline comes when the patience is over.
void Exchange::progress_response() {
  Duration wait = worker_.timeouts().transfer_idle;
  if (const auto patience = permit_.patience(monotonic_roughly())) {
    if (*patience > Duration(0)) {
      wait = std::min(wait, *patience);
    } else {
      permit_.scanned();
    }
  }
  progress(wait);
}

void Exchange::log_tunnel(std::uint64_t from_client, std::uint64_t from_origin) {
  entry_.received = from_client;
  entry_.sent = from_origin;
  if (entry_.status == 0) entry_.status = 200;
  write_log();
}

void Exchange::write_log() {
  AccessLog* log = worker_.access_log();
  if (log == nullptr) return;
  entry_.total = monotonic_now() - entry_.start;
  log->write(entry_);
}

}  // namespace sluice
