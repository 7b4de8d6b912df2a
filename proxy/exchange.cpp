#include "proxy/exchange.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "proxy/clock.h"
#include "proxy/help_page.h"
#include "proxy/job_name.h"
#include "proxy/worker.h"

namespace sluice {
namespace {

constexpr Duration kHeld = 365 * 24h;           // the gate ends a hold, not this
constexpr std::uint64_t kReplayed = 64 * 1024;  // the largest body that is kept to be sent again
constexpr std::uint16_t kHttpPort = 80, kHttpsPort = 443;
constexpr std::size_t kTurn = 4 << 20;             // bytes moved before others get a turn
constexpr std::uint64_t kSpliceFrom = 256 * 1024;  // bytes still to come; fewer are copied

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

Refusal connect_refusal(const Connected& failed) {
  Refusal refusal;
  refusal.detail = failed.detail;
  const auto set = [&](std::uint16_t status, std::string_view reason, std::string_view type) {
    refusal.status = status;
    refusal.reason = reason;
    refusal.proxy_status = type;
  };
  switch (failed.error) {
    case ConnectError::none:
    case ConnectError::bad_name:
    case ConnectError::name_not_found:
    case ConnectError::name_failed: set(502, "dns", "dns_error"); break;
    case ConnectError::name_timed_out: set(502, "dns", "dns_timeout"); break;
    case ConnectError::denied: set(403, "destination-denied", "destination_ip_prohibited"); break;
    case ConnectError::self: set(508, "loop", "proxy_loop_detected"); break;
    case ConnectError::refused: set(502, "connect", "connection_refused"); break;
    case ConnectError::unreachable: set(502, "connect", "destination_ip_unroutable"); break;
    case ConnectError::timed_out: set(504, "connect-timeout", "connection_timeout"); break;
    case ConnectError::local:
      set(503, "overloaded", "connection_limit_reached");
      refusal.retry_after_s = 1;
      break;
  }
  return refusal;
}

OutcomeKind blame(ConnectError error) {
  switch (error) {
    case ConnectError::refused:
    case ConnectError::unreachable:
    case ConnectError::timed_out: return OutcomeKind::network;
    default: return OutcomeKind::local;
  }
}

}  // namespace

Exchange::Exchange(Worker& worker, Owner& owner, Stream& client)
    : worker_(worker), owner_(owner), client_(client), number_(worker.next_id()) {}

Exchange::~Exchange() { abandon(); }

void Exchange::reset() {
  phase_ = Phase::idle;
  head_bytes_.clear();
  replay_.clear();
  watch_ = {};
  request_complete_ = true;
  head_sent_ = body_sent_ = heard_ = response_begun_ = close_client_ = tunnel_ = upgrade_ = false;
}

void Exchange::begin(const Head& head, const Address& peer, bool client_allowed) {
  client_hash_ = AddressHash{}(peer.with_port(0));
  format_ = preferred_format(head);
  client_minor_ = head.minor;
  request_framing_ = head.framing;
  request_complete_ = false;
  body_free_ = is_body_free(head);
  close_client_ = head.close || worker_.draining();
  head_method_ = head.method == "HEAD";
  idempotent_ = is_idempotent(head.method);
  tunnel_ = head.method == "CONNECT";
  if (worker_.access_log() != nullptr) {
    entry_ = {};
    entry_.id = worker_.next_id();
    entry_.client = peer.ip_text();
    entry_.method = head.method;
    entry_.start = monotonic_now();
  }
  if (worker_.emergency().in_force()) return refuse(worker_.emergency().refusal());
  if (!client_allowed) {
    return refuse({403, "client-denied", "http_request_denied",
                   "this address is not in access.clients of the proxy"});
  }
  if (!has_valid_host(head)) {
    close_client_ = true;
    return refuse({400, "bad-request", "http_request_error",
                   "the request has not exactly one Host field that names a host"});
  }
  if (!inside_ && !tunnel_ && is_origin_form(head.target)) return answer_locally(head);
  if (!find_target(head)) return;
  if (worker_.access_log() != nullptr) {
    entry_.host = target_.authority;
    entry_.path = target_.path.substr(0, target_.path.find('?'));
  }
  if (!inside_) identify(head);
  if (choose_route() && check_user(head)) admit(head);
}

bool Exchange::find_target(const Head& head) {
  if (inside_) {
    InsideTarget found = inside_target(*inside_, head);
    if (found.refusal) {
      close_client_ = true;
      tunnel_ = false;
      refuse(std::move(*found.refusal));
      return false;
    }
    target_ = std::move(found.target);
    return true;
  }
  auto target = tunnel_ ? parse_authority_form(head.target) : parse_absolute_form(head.target);
  if (!target) {
    close_client_ = true;
    refuse({400, "bad-request", "http_request_error", "bad request target: " + target.error()});
    return false;
  }
  target_ = std::move(*target);
  return true;
}

// The user name of the proxy's URL names a job; the password of `sluice exec` is known here.
void Exchange::identify(const Head& head) {
  job_.clear();
  exec_.reset();
  const Field* field = head.find(FieldName::proxy_authorization);
  if (field == nullptr) return;
  const auto who = parse_basic(field->value);
  if (!who) return;
  job_ = job_name(who->name);
  exec_ = worker_.tls().token.read(who->password);
}

// In which form the origin is spoken to, and whether we look into a tunnel. False: it cannot be.
bool Exchange::choose_route() {
  const Match match = worker_.governor().match(target_.host, target_.port, target_.path);
  const Policy& policy = *match.policy;
  tls_context_ = nullptr;
  intercept_ = false;
  if (tunnel_) {
    const std::string& mode = worker_.tls_config().intercept;
    intercept_ = mode != "never" && policy.intercept.value_or(exec_.has_value() || mode == "all");
    return true;
  }
  if (!inside_ && policy.upgrade && target_.port == kHttpPort) {
    target_.port = kHttpsPort;
    if (target_.authority.ends_with(":80")) target_.authority.remove_suffix(3);
  }
  if (inside_ ? !inside_->secure : !policy.upgrade) return true;
  auto context = worker_.tls().origins.context(
      {policy.extra_ca, policy.client_cert, policy.client_key}, monotonic_now());
  if (!context) {
    refuse({502, "tls", "tls_certificate_error", context.error()});
    return false;
  }
  tls_context_ = std::move(*context);
  return true;
}

// False: an answer was given, or will come with the user's check.
bool Exchange::check_user(const Head& head) {
  Users* users = worker_.users();
  if (users == nullptr || exec_ || inside_) return true;
  const Field* field = head.find(FieldName::proxy_authorization);
  const auto who = field != nullptr ? parse_basic(field->value) : std::nullopt;
  const auto refuse_user = [this](std::string_view why) {
    Refusal refusal{407, "auth-required", "http_request_denied", std::string(why)};
    refusal.challenge = "Basic realm=\"sluice\", charset=\"UTF-8\"";
    refuse(std::move(refusal));
  };
  if (!who) {
    refuse_user("this proxy asks for a user name and a password");
    return false;
  }
  if (worker_.access_log() != nullptr) entry_.user = who->name;
  if (const auto known = users->recall(*who)) {
    if (*known == Users::Answer::yes) return true;
    refuse_user("the user name or the password is wrong");
    return false;
  }
  // The head is gone when the answer comes: what the request becomes is written down now.
  if (const auto refusal = objection(head)) {
    refuse(*refusal);
    return false;
  }
  if (intercept_) {
    ahead_ = std::make_unique<Inside>(
        Inside{target_.host, target_.port, std::string(target_.authority)});
  } else {
    errand_ = errand(head);
  }
  write_down(head);
  phase_ = Phase::checking;
  user_check_ = users->verify(
      *who, [this](auto task) { worker_.post(std::move(task)); },
      [this, refuse_user](Users::Answer answer) {
        if (answer == Users::Answer::yes) {
          if (intercept_) {
            look_inside();
          } else {
            enter(worker_.governor().admit(std::move(errand_), *this, worker_));
          }
        } else if (answer == Users::Answer::busy) {
          refuse({503, "overloaded", "proxy_internal_error", "too many log-ins at once", {}, 1});
        } else {
          refuse_user("the user name or the password is wrong");
        }
        owner_.on_exchange();
      });
  return false;
}

// RFC 9110 §7.6.3: our own name in Via means that the request has been here before.
std::optional<Refusal> Exchange::objection(const Head& head) const {
  for (const Field& field : head.fields) {
    if (field.id == FieldName::via &&
        field.value.find(worker_.pseudonym()) != std::string_view::npos) {
      return Refusal{508, "loop", "proxy_loop_detected",
                     "the request has come round to this proxy again", target_.host};
    }
  }
  // Inside a tunnel that we look into, the client can read the refusal: there it is given.
  if (const auto verdict = worker_.access().host(target_.host); !verdict && !intercept_) {
    return Refusal{403, "destination-denied", "destination_ip_prohibited", verdict.why,
                   target_.host};
  }
  if (tunnel_ && !worker_.connect_port_allowed(target_.port)) {
    return Refusal{
        403, "port-denied", "http_request_denied",
        "CONNECT to port " + std::to_string(target_.port) + " is not in proxy.connect_ports",
        target_.host};
  }
  return std::nullopt;
}

void Exchange::admit(const Head& head) {
  if (auto refusal = objection(head)) return refuse(std::move(*refusal));
  if (intercept_) {
    ahead_ = std::make_unique<Inside>(
        Inside{target_.host, target_.port, std::string(target_.authority)});
    return look_inside();
  }
  if (max_forwards(head) == 0) return answer_locally(head);
  auto admission = worker_.governor().admit(errand(head), *this, worker_);
  if (admission.refusal) return refuse(std::move(*admission.refusal));
  write_down(head);
  enter(std::move(admission));
}

Errand Exchange::errand(const Head& head) const {
  std::string_view path = target_.path;
  if (path.empty() && !tunnel_) path = "/";
  return worker_.governor().prepare({.request = head,
                                     .host = target_.host,
                                     .port = target_.port,
                                     .secure = tunnel_ || tls_context_ != nullptr,
                                     .path = path,
                                     .tunnel = tunnel_,
                                     .job = job_,
                                     .job_run = exec_ ? exec_->run : std::string_view(),
                                     .job_max_requests = exec_ ? exec_->max_requests : 0,
                                     .client = client_hash_,
                                     .connection = number_});
}

void Exchange::look_inside() {
  Mint& mint = worker_.tls().mint;
  leaf_ = mint.find(target_.host);
  phase_ = leaf_ ? Phase::intercepted : Phase::checking;
  if (leaf_) return;
  minting_ = mint.want(
      target_.host, [this](auto task) { worker_.post(std::move(task)); },
      [this](Result<LeafRef> leaf) {
        if (leaf) {
          leaf_ = std::move(*leaf);
          phase_ = Phase::intercepted;
        } else {
          spdlog::error("no certificate for {}: {}", target_.host, leaf.error());
          refuse({502, "tls", "proxy_internal_error", leaf.error()});
        }
        owner_.on_exchange();
      });
}

SslPtr Exchange::accept_tls() {
  return worker_.tls().clients.accept(*std::exchange(leaf_, nullptr), ahead_->host, ahead_->port);
}

void Exchange::go_inside(bool secure) {
  reset();
  leaf_ = nullptr;
  inside_ = std::move(ahead_);
  inside_->secure = secure;
}

// What the origin will get, made before the head's bytes are read over.
void Exchange::write_down(const Head& head) {
  if (!tunnel_) {
    upgrade_ = wants_upgrade(head);
    write_request(head_bytes_, head, target_, worker_.via(), upgrade_);
  }
  target_.authority = target_.path = {};
  short_body_ = head.framing == Framing::length && head.length <= kReplayed;
}

void Exchange::enter(Admission admission) {
  if (admission.refusal) return refuse(std::move(*admission.refusal));
  if (admission.hold) {
    hold_ = std::move(admission.hold);
    phase_ = Phase::held;
    return progress(kHeld);
  }
  permit_ = std::move(admission.permit);
  keeps_body_ = short_body_ && permit_.replayable();
  find_origin(false);
}

void Exchange::on_admission(Admission admission) {
  hold_.reset();
  enter(std::move(admission));
  owner_.on_exchange();
}

void Exchange::answer_locally(const Head& head) {
  const bool trace = head.method == "TRACE";
  const std::string body = trace                      ? traced(head)
                           : head.method == "OPTIONS" ? ""
                                                      : help_page(worker_.listen());
  respond(local_reply(body, trace ? "message/http" : "text/plain; charset=utf-8", head_method_,
                      worker_.date(), close_client_),
          200);
}

// Whoever has another idea of whom to trust uses another connection.
std::string Exchange::origin_key() const {
  std::string key = target_.host + ':' + std::to_string(target_.port);
  if (tls_context_) key.append("/").append(tls_context_->name);
  return key;
}

void Exchange::find_origin(bool fresh) {
  if (!tunnel_ && !fresh) origin_ = worker_.pool().take(origin_key(), *this);
  // What cannot be sent twice does not go out on a connection that the origin has just closed.
  if (origin_ && !(idempotent_ && body_free_) && !origin_->stream.is_quiet()) drop_origin();
  if (origin_) {
    phase_ = Phase::open;
    return progress(worker_.timeouts().transfer_idle);
  }
  phase_ = Phase::connecting;
  const Instant deadline = monotonic_now() + worker_.timeouts().connect;
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
  phase_ = tunnel_ ? Phase::switched : Phase::open;
  if (tunnel_) permit_.connected();
  progress(worker_.timeouts().transfer_idle);
  owner_.on_exchange();
}

void Exchange::secure_origin() {
  switch (origin_->stream.handshake()) {
    case Io::blocked: return;
    case Io::moved:
      phase_ = Phase::open;
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
              (why.empty() ? "the connection broke" : why),
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
  }
  out.clear();
  if (!sent) {
    // An early answer may be waiting behind a broken write: reading tells.
    if (!origin_->stream.readable()) return on_origin_gone(false);
    return;
  }
  if (request_complete_ && !response_begun_) {
    const auto patience = permit_.patience(monotonic_now());
    progress(std::min(worker_.timeouts().first_byte, patience.value_or(kHeld)));
  } else {
    progress(worker_.timeouts().transfer_idle);
  }
}

void Exchange::on_ready() {
  if (!origin_) return;
  if (phase_ == Phase::connecting) return secure_origin();
  origin_->stream.flush();  // a broken write shows when reading
  pump_response();
  owner_.on_exchange();
}

void Exchange::pump_response() {
  std::size_t budget = kTurn;
  while (phase_ == Phase::open && origin_ && client_.backlog() == 0 && budget > 0) {
    if (pipe_ || (origin_->reader.remaining() >= kSpliceFrom && watch_.done() &&
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
    budget -= std::min(budget, count);
    std::string_view in(buffer.data(), count);
    const bool complete = read_response(in);
    Gather& out = worker_.to_client();
    const bool sent = out.empty() || client_.write(out.pieces());
    out.clear();
    if (!sent) {
      phase_ = Phase::broken;
      return;
    }
    if (complete) return finish_response(!in.empty());
    if (phase_ == Phase::open && response_begun_) progress(worker_.timeouts().transfer_idle);
  }
  if (phase_ == Phase::open && budget == 0 && origin_) origin_->stream.yield();
}

// Turns what was read into what the client gets. True: the response is complete.
bool Exchange::read_response(std::string_view& in) {
  Reader& reader = origin_->reader;
  for (;;) {
    switch (reader.next(in)) {
      case Reader::Event::more: return false;
      case Reader::Event::head:
        if (!begin_response(reader.head())) return false;
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

bool Exchange::begin_response(const Head& head) {
  ResponsePlan plan;
  std::string& text = worker_.to_client().text();
  if (head.status == 101 && !upgrade_) {
    fail_response();  // RFC 9110 §15.2.2: nobody asked for it
    return false;
  }
  if (head.status < 200) {
    plan.upgrade = head.status == 101;
    if (plan.upgrade) {
      phase_ = Phase::switched;
      entry_.status = 101;
      permit_.answered(head, *this, worker_);
      permit_.scanned();
    }
    // RFC 9110 §15.2: HTTP/1.0 knows no interim responses.
    if (client_minor_ >= 1) {
      write_response(text, head, plan, worker_.via(), worker_.date());
      worker_.to_client().seal();
    }
    return true;
  }
  auto judgement = permit_.answered(head, *this, worker_);
  if (send_again(judgement)) return false;
  wait_for_store(judgement);
  watch_ = BodyWatch(permit_.scan(head), head);
  if (watch_.done()) permit_.scanned();
  plan.framing = head.framing;
  if (head.framing == Framing::chunked || head.framing == Framing::until_close) {
    plan.framing = client_minor_ >= 1 ? Framing::chunked : Framing::until_close;
  }
  close_client_ |= !request_complete_ || plan.framing == Framing::until_close || worker_.draining();
  plan.close = close_client_;
  plan.keep_alive_told = client_minor_ == 0 && !plan.close;
  write_response(text, head, plan, worker_.via(), worker_.date());
  worker_.to_client().seal();
  response_begun_ = true;
  response_framing_ = plan.framing;
  entry_.status = head.status;
  if (worker_.access_log() != nullptr) entry_.to_first_byte = monotonic_now() - entry_.start;
  return true;
}

// A long body of known length moves inside the kernel. False: nothing more can move now.
bool Exchange::splice_response() {
  Reader& reader = origin_->reader;
  if (!pipe_) pipe_ = worker_.pipes().take();
  if (!pipe_) {
    fail_response();
    return false;
  }
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
  if (reusable) {
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
    return find_origin(true);
  }
  auto judgement = permit_.failed(OutcomeKind::network, false, *this, worker_);
  if (send_again(judgement)) return;
  wait_for_store(judgement);
  refuse({502, "origin-closed", "connection_terminated",
          "the origin closed the connection without an answer", target_.host});
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
  if (!judgement.retry || !can_replay() || upgrade_) return false;
  drop_origin();
  worker_.to_client().clear();
  head_sent_ = false;
  enter(worker_.governor().admit_again(std::move(permit_), *this, worker_));
  return true;
}

// What the answer taught must be written down before the client sees it (DESIGN §4).
void Exchange::wait_for_store(Judgement& judgement) {
  if (!judgement.wait) return;
  durable_ = std::move(judgement.wait);
  client_.cork();
}

void Exchange::on_durable() {
  durable_.reset();
  if (!client_.uncork()) phase_ = Phase::broken;
  owner_.on_exchange();
}

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
void Exchange::fail_response() {
  if (response_begun_) {
    drop_origin();
    phase_ = Phase::broken;
    return;
  }
  worker_.to_client().clear();
  auto judgement = permit_.failed(OutcomeKind::network, false, *this, worker_);
  wait_for_store(judgement);
  const Fault& fault = origin_->reader.fault();
  refuse({502, "origin-closed",
          fault.status == 431 ? "http_response_header_section_size" : "http_protocol_error",
          "the origin's answer is no valid HTTP" +
              (fault.why.empty() ? "" : ": " + std::string(fault.why)),
          target_.host});
}

void Exchange::refuse_unreadable(const Fault& fault) {
  if (response_begun_) {
    drop_origin();
    phase_ = Phase::broken;
    return;
  }
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
  if (response_begun_) {
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
  user_check_.reset();
  hold_.reset();
  errand_ = {};
  permit_.done();
  note("emergency-stop");
  if (!response_begun_ && phase_ != Phase::switched) return refuse(worker_.emergency().refusal());
  drop_origin();
  phase_ = Phase::broken;
}

void Exchange::refuse(Refusal refusal) {
  if (refusal.host.empty()) refusal.host = target_.host;
  // What follows a refused CONNECT, or a body that nobody will read, is no request.
  close_client_ |= tunnel_ || !(request_complete_ || body_free_) || worker_.draining();
  entry_.reason = refusal.reason;
  respond(render(refusal, {format_, head_method_, close_client_, worker_.date()}), refusal.status);
}

void Exchange::respond(std::string_view reply, std::uint16_t status) {
  drop_origin();
  permit_.done();
  entry_.status = status;
  phase_ = client_.write(reply) ? Phase::done : Phase::broken;
  write_log();
}

void Exchange::abandon() {
  if (phase_ != Phase::idle && phase_ != Phase::done) {
    if (entry_.reason.empty()) entry_.reason = phase_ == Phase::broken ? "cut-off" : "client-left";
    if (phase_ != Phase::switched) write_log();
  }
  user_check_.reset();
  minting_.reset();
  drop_origin();
  hold_.reset();
  durable_.reset();
  errand_ = {};
  permit_ = {};
  phase_ = Phase::idle;
}

void Exchange::drop_origin() {
  dial_ = {};
  if (pipe_) pipe_.reset();
  if (origin_) worker_.bury(std::move(origin_));
}

void Exchange::progress(Duration wait) { owner_.set_timeout(wait); }

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
