// One request and its response: asks leave, finds an origin connection, sends the request on, and
// streams the response back, each side reading only as fast as the other takes. Lives in its client
// connection and serves one request after the other. Never buffers a body.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/access_log.h"
#include "proxy/body_watch.h"
#include "proxy/exec_run.h"
#include "proxy/governor/admission.h"
#include "proxy/http/rewrite.h"
#include "proxy/http/target.h"
#include "proxy/inside.h"
#include "proxy/net/dialer.h"
#include "proxy/net/stream.h"
#include "proxy/origin_pool.h"
#include "proxy/own_time.h"
#include "proxy/refusal.h"
#include "proxy/robots/robots_desk.h"
#include "proxy/tls/mint.h"
#include "proxy/tls/origin_side.h"
#include "proxy/users.h"

namespace sluice {

class Worker;

class Exchange final : public Stream::Handler, public Asker {
 public:
  enum class Phase : std::uint8_t {
    idle,         // between requests
    checking,     // who the user is, is being found out
    held,         // waits for leave to go
    connecting,   // to the origin
    open,         // request and response are on their way
    done,         // the client has its whole answer: closes_client() says what is next
    broken,       // the answer was cut off: the client must not take it for whole
    switched,     // the connections are to be joined: take_origin()
    intercepted,  // a tunnel into which we look: accept_tls(), then go_inside()
  };
  // Told when the phase has changed or more of the request may be sent, from the loop.
  class Owner {
   public:
    virtual void on_exchange() = 0;
    virtual void set_timeout(Duration wait) = 0;

   protected:
    ~Owner() = default;
  };

  Exchange(Worker& worker, Owner& owner, Stream& client);
  ~Exchange();

  Phase phase() const { return phase_; }
  bool request_complete() const { return request_complete_; }
  bool closes_client() const { return close_client_; }
  bool is_tunnel() const { return tunnel_; }
  bool body_free() const { return body_free_; }
  bool head_sent() const { return head_sent_; }
  // The client has some of a response, and more must follow.
  bool is_answering() const { return phase_ == Phase::open && response_begun_; }

  // The request, as it is read. Nothing is sent before flush_request(), so a head and the body
  // that came with it leave together.
  // `pipelined`: it was here before the answer to the one before it was complete.
  void begin(const Head& head, const Address& peer, bool client_allowed, bool pipelined);
  bool takes_body() const;
  void request_body(std::string_view bytes);
  void request_end(const std::string& trailers);
  void flush_request();

  // Moves what can be moved of the response.
  void pump_response();

  void refuse_unreadable(const Fault& fault);  // the request broke off or was malformed
  void on_timeout();
  void cut();      // an emergency stop: no byte more to or from the origin
  void abandon();  // the client has left
  void reset();    // ready for the next request
  void note(std::string_view reason) { entry_.reason = reason; }  // for the access log
  void close_after() { close_client_ = true; }

  // After `intercepted`: our end of the client's TLS session; from go_inside() on, every request is
  // one to where CONNECT went.
  SslPtr accept_tls();
  void go_inside(bool secure);
  // Every request is one of that run, whoever else it says it is.
  void start_run(ExecRunRef run) { exec_ = std::move(run); }
  // Every request is one to that place, as if in a tunnel to it.
  void start_inside(Inside place) { inside_ = std::make_unique<Inside>(std::move(place)); }
  const std::string& host() const { return target_.host; }

  std::unique_ptr<OriginConn> take_origin() { return std::move(origin_); }
  std::string take_early_bytes() { return std::move(early_); }
  void log_tunnel(std::uint64_t from_client, std::uint64_t from_origin);

 private:
  static constexpr Duration kUnlimited = 365 * 24h;  // something else will end it

  void on_ready() override;  // of the origin
  void on_admission(Admission admission) override;
  void on_durable() override;
  Errand errand(const Head& head) const;
  void write_down(const Head& head);
  void enter(Admission admission);
  void identify(const Head& head);
  bool find_target(const Head& head);
  bool choose_route();
  void look_inside();
  void secure_origin();
  void fail_handshake(Io how);
  std::string origin_key() const;
  void admit(const Head& head);
  void ask_leave();
  bool note_robots(const Head& head, const Journey& who);
  bool check_user(const Head& head);
  std::optional<Refusal> objection(const Head& head) const;
  bool settle_here(const Head& head);
  void answer_for_ourselves(const Head& head);
  void answer_locally(const Head& head);
  void take_resting();
  void find_origin();
  void on_connected(Connected connected);
  bool is_stale() const;
  bool can_replay() const;
  bool send_again(const Judgement& judgement);
  void watch(std::string_view bytes);
  void wait_for_store(Judgement& judgement);
  void end_hold();
  void count_overhead(OwnTime& time);
  void on_origin_gone(bool cleanly);
  bool read_response(std::string_view& in);
  bool begin_response(const Head& head, std::string_view body_at_hand);
  Judgement judge(const Head& head, std::string_view body_at_hand);
  bool splice_response();
  void finish_response(bool surplus);
  void refuse(Refusal refusal);
  ReplyOptions reply_options();
  void respond(std::string_view reply, std::uint16_t status);
  void fail_response(std::string_view why = {});
  void stop_waiting();
  void drop_origin();
  void progress(Duration wait);
  void progress_response();
  void write_log();

  Worker& worker_;
  Owner& owner_;
  Stream& client_;
  Phase phase_ = Phase::idle;

  // The request.
  Target target_;
  std::string head_bytes_;  // for the origin; kept until the response begins
  Framing request_framing_ = Framing::none;
  ReplyFormat format_ = ReplyFormat::json;
  std::uint8_t client_minor_ = 1;
  bool tunnel_ = false;
  bool head_method_ = false;
  bool idempotent_ = false;
  bool fresh_ = false;      // it goes on no connection that had rested
  bool pipelined_ = false;  // the loop may not have turned since the last answer
  bool body_free_ = false;
  bool request_complete_ = true;
  bool head_sent_ = false;
  bool body_sent_ = false;
  bool short_body_ = false;  // short enough to be kept
  bool keeps_body_ = false;  // in replay_, to send it again
  bool personal_ = false;    // it authenticates the connection on which it goes
  std::string replay_;
  std::string upgrade_;            // the protocols it offers; empty: none
  const std::uint64_t number_;     // of the client connection
  std::uint64_t client_hash_ = 0;  // of the client's address

  // Who asks: read from each request, or from the CONNECT around it.
  std::string job_;
  ExecRunRef exec_;                 // null: it did not come through `sluice exec`
  std::unique_ptr<Inside> inside_;  // null: the requests are not in a tunnel
  std::unique_ptr<Inside> ahead_;   // where an intercepted CONNECT leads
  LeafRef leaf_;
  Mint::Handle minting_;

  // The way to the origin.
  bool intercept_ = false;        // we look into this tunnel
  OriginContextRef tls_context_;  // null: the origin is spoken to in plain text
  Errand errand_;                 // while the user is checked
  Hold hold_;                     // a place in the queue
  Permit permit_;
  Hold durable_;  // the store is writing what the answer taught
  Users::Handle user_check_;
  RobotsDesk::Handle robots_;
  struct RobotsQuestion {
    std::string user_agent;
    Inside place;
    bool is_for_it = false;  // the request is for robots.txt itself
  };
  std::unique_ptr<RobotsQuestion> robots_question_;  // null: its answer is known, or nobody minds
  DialHandle dial_;
  std::unique_ptr<OriginConn> origin_;
  std::unique_ptr<OriginConn> own_;  // rests; its authentication is this client's
  std::unique_ptr<Pipe> pipe_;
  std::string early_;  // bytes behind a 101

  // The response.
  BodyWatch watch_;
  Framing response_framing_ = Framing::none;
  OwnTime own_time_;     // from the request's head to the first byte of the answer
  OwnTime corked_time_;  // the same, of an answer that waits for the store
  Instant held_since_{};
  bool heard_ = false;  // anything at all from the origin
  bool response_begun_ = false;
  bool close_client_ = false;
  bool copies_ = false;        // there was no pipe to splice with
  std::uint8_t interims_ = 0;  // 1xx so far
  AccessEntry entry_;
};

}  // namespace sluice
