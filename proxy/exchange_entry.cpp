// The first part of an exchange: who asks, for what, whether they may, and leave to go.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "proxy/clock.h"
#include "proxy/exchange.h"
#include "proxy/help_page.h"
#include "proxy/http/connection_auth.h"
#include "proxy/job_name.h"
#include "proxy/worker.h"

namespace sluice {
namespace {

constexpr std::uint64_t kReplayed = 64 * 1024;  // the largest body that is kept to be sent again
constexpr Duration kCheckLimit = 10s;           // for a password, or for a certificate to be made
constexpr std::uint16_t kHttpPort = 80, kHttpsPort = 443;

}  // namespace

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

// The user name of the proxy's URL names a job, unless the door it came through says more.
void Exchange::identify(const Head& head) {
  job_.clear();
  if (exec_) {
    job_ = exec_->job;
    return;
  }
  const Field* field = head.find(FieldName::proxy_authorization);
  if (field == nullptr) return;
  const auto who = parse_basic(field->value);
  if (who) job_ = job_name(who->name);
}

// In which form the origin is spoken to, and whether we look into a tunnel. False: it cannot be.
bool Exchange::choose_route() {
  const Match match = worker_.governor().match(target_.host, target_.port, target_.path);
  const Policy& policy = *match.policy;
  tls_context_ = nullptr;
  intercept_ = false;
  if (tunnel_) {
    const std::string& mode = worker_.tls_config().intercept;
    intercept_ = mode != "never" && policy.intercept.value_or(exec_ != nullptr || mode == "all");
    return true;
  }
  if (!inside_ && policy.upgrade && target_.port == kHttpPort) {
    target_.port = kHttpsPort;
    if (target_.authority.ends_with(":80")) target_.authority.remove_suffix(3);
  }
  if (inside_ ? !inside_->secure : !policy.upgrade) return true;
  auto context =
      worker_.tls().origins.context({policy.extra_ca, policy.client_cert, policy.client_key});
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
  if (settle_here(head)) return false;
  if (intercept_) {
    ahead_ = std::make_unique<Inside>(
        Inside{target_.host, target_.port, std::string(target_.authority)});
  } else {
    errand_ = errand(head);
    note_robots(head, errand_.journey);
  }
  write_down(head);
  phase_ = Phase::checking;
  progress(kCheckLimit);
  user_check_ = users->verify(
      *who, [this](auto task) { worker_.post(std::move(task)); },
      [this, refuse_user](Users::Answer answer) {
        if (answer == Users::Answer::yes) {
          if (intercept_) {
            look_inside();
          } else {
            ask_leave();
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
  const bool in_tunnel = inside_ && !inside_->ours;
  if ((tunnel_ ? !intercept_ : in_tunnel) && !worker_.connect_port_allowed(target_.port)) {
    return Refusal{
        403, "port-denied", "http_request_denied",
        "CONNECT to port " + std::to_string(target_.port) + " is not in proxy.connect_ports",
        target_.host};
  }
  return std::nullopt;
}

// True: it goes no further than here, and the answer is given.
bool Exchange::settle_here(const Head& head) {
  if (auto refusal = objection(head)) {
    refuse(std::move(*refusal));
    return true;
  }
  if (max_forwards(head) != 0) return false;
  answer_locally(head);
  return true;
}

void Exchange::admit(const Head& head) {
  if (settle_here(head)) return;
  if (intercept_) {
    ahead_ = std::make_unique<Inside>(
        Inside{target_.host, target_.port, std::string(target_.authority)});
    return look_inside();
  }
  Errand asked = errand(head);
  if (note_robots(head, asked.journey)) {
    errand_ = std::move(asked);
    write_down(head);
    return ask_leave();
  }
  auto admission = worker_.governor().admit(std::move(asked), *this, worker_);
  if (admission.refusal) return refuse(std::move(*admission.refusal));
  write_down(head);
  enter(std::move(admission));
}

// What robots.txt says of the pace is found out before the first request goes. False: nobody minds.
bool Exchange::note_robots(const Head& head, const Journey& who) {
  robots_question_.reset();
  const bool ours = inside_ && inside_->ours;
  const Rules& rules = *who.match.rules;
  if (tunnel_ || ours || !rules.pace.crawl_delay || rules.mode == Mode::observe) return false;
  const auto agent = std::find_if(head.fields.begin(), head.fields.end(), [](const Field& field) {
    return equals_ignoring_case(field.name, "user-agent");
  });
  robots_question_ = std::make_unique<RobotsQuestion>();
  if (agent != head.fields.end()) robots_question_->user_agent = agent->value.substr(0, 512);
  robots_question_->place = {target_.host, target_.port, std::string(target_.authority),
                             tls_context_ != nullptr, true};
  robots_question_->is_for_it = target_.path.substr(0, target_.path.find('?')) == "/robots.txt";
  return true;
}

// For a request that was written down: its errand asks now.
void Exchange::ask_leave() {
  if (!robots_question_) return enter(worker_.governor().admit(std::move(errand_), *this, worker_));
  const std::unique_ptr<RobotsQuestion> question = std::move(robots_question_);
  const std::string origin = origin_key();
  const RobotsRef known = worker_.robots().find(origin, monotonic_now());
  if (known) errand_.journey.crawl_delay = known->crawl_delay(question->user_agent);
  if (known || question->is_for_it) return ask_leave();
  phase_ = Phase::checking;
  progress(kUnlimited);  // a visit ends by itself
  auto asked = worker_.robots().want(
      origin, worker_, [this, user_agent = question->user_agent](const RobotsRef& robots) {
        errand_.journey.crawl_delay = robots->crawl_delay(user_agent);
        ask_leave();
        owner_.on_exchange();
      });
  robots_ = std::move(asked.handle);
  const Duration max_wait = errand_.journey.match.rules->hold.max_wait;
  if (asked.first) worker_.fetch_robots(origin, std::move(question->place), max_wait);
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
                                     .job_numbered = exec_ && exec_->numbered,
                                     .client = client_hash_,
                                     .connection = number_});
}

void Exchange::look_inside() {
  Mint& mint = worker_.tls().mint;
  leaf_ = mint.find(target_.host);
  phase_ = leaf_ ? Phase::intercepted : Phase::checking;
  if (leaf_) return;
  progress(kCheckLimit);
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
    const bool upgrade = wants_upgrade(head);
    if (upgrade) upgrade_ = offered_protocols(head);
    personal_ = authenticates_connection(head);
    write_request(head_bytes_, head, target_, worker_.pseudonym(), upgrade);
  }
  target_.authority = target_.path = {};
  short_body_ = head.framing == Framing::length && head.length <= kReplayed;
}

void Exchange::enter(Admission admission) {
  if (admission.refusal) return refuse(std::move(*admission.refusal));
  if (admission.hold) {
    hold_ = std::move(admission.hold);
    phase_ = Phase::held;
    held_since_ = monotonic_now();
    own_time_.wait(held_since_);
    return progress(kUnlimited);
  }
  permit_ = std::move(admission.permit);
  // The place of a request that a stop has cut is no reason for another to go.
  if (worker_.emergency().in_force()) return refuse(worker_.emergency().refusal());
  keeps_body_ = short_body_ && permit_.replayable();
  find_origin();
}

void Exchange::on_admission(Admission admission) {
  end_hold();
  enter(std::move(admission));
  owner_.on_exchange();
}

// However it ends: with leave to go, a refusal, or the client's going away.
void Exchange::end_hold() {
  if (!hold_) return;
  hold_.reset();
  const Instant now = monotonic_now();
  worker_.tally().held(now - held_since_);
  own_time_.go_on(now);
}

// The target names no origin.
void Exchange::answer_for_ourselves(const Head& head) {
  if (head.method == "GET" || head_method_ || head.target == "*") return answer_locally(head);
  refuse({400, "bad-request", "http_request_error",
          "bad request target: this is a proxy and no web server, so it takes a URL, not a path"});
}

void Exchange::answer_locally(const Head& head) {
  const bool trace = head.method == "TRACE";
  const std::string body = trace                      ? traced(head)
                           : head.method == "OPTIONS" ? ""
                                                      : help_page(worker_.listen());
  respond(local_reply(body, trace ? "message/http" : "text/plain; charset=utf-8", reply_options()),
          200);
}

}  // namespace sluice
