// What an exchange and the governor say to each other: a question, leave to send, and how it went.
// Everything here belongs to the loop of the exchange that holds it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "policy/classify.h"
#include "policy/outcome.h"
#include "proxy/governor/rulebook.h"
#include "proxy/http/head.h"
#include "proxy/job_table.h"
#include "proxy/mailbox.h"
#include "proxy/refusal.h"

namespace sluice {

class Gate;
class Governor;
struct Admission;
struct Cost;
struct Visitor;

struct Ask {
  const Head& request;    // its views are good during the call only
  std::string_view host;  // lower case
  std::uint16_t port = 0;
  bool secure = false;    // the origin is spoken to over TLS
  std::string_view path;  // with its query; empty for a tunnel
  bool tunnel = false;
  std::string_view job{};              // empty: none was named
  std::string_view job_run{};          // empty: the job does not name its runs
  std::uint64_t job_max_requests = 0;  // of its own will; 0: none
  bool job_numbered = false;           // as in ExecRun
  // Turns are between jobs, then clients, then connections; order is within one connection.
  std::uint64_t client = 0;  // its address, as a number
  std::uint64_t connection = 0;
};

// What tells one request from another, to see a client that asks for the same again and again.
struct AskedUrl {
  std::uint64_t hash = 0;  // 0: it is not told apart
  std::string name{};      // empty: it was not asked for lately
};

// One request from its first question to its last try.
struct Journey {
  Match match{};
  Instant arrived{};  // when it was first asked about
  std::uint64_t client = 0, connection = 0;
  std::string job{}, job_run{};
  std::uint64_t job_max_requests = 0;
  std::shared_ptr<JobTable::Pass> pass{};  // its place among its job's; null: of no job
  std::shared_ptr<const Cost> cost{};      // null: it is free
  std::optional<Duration> crawl_delay{};   // by robots.txt, where the policy minds it
  unsigned tries = 0;                      // that the origin has refused
  AskedUrl url{};                          // its name is gone once the gate was asked
  std::string method{};
  bool vouched_for = false;  // it does no harm when sent twice, says its client
  bool tunnel = false;
};

// A request whose policy and key are known, and that has not asked yet.
struct Errand {
  std::shared_ptr<Gate> gate;
  Journey journey;
};

// Who asks. Told on its own loop, never inside a call to the governor.
class Asker {
 public:
  virtual void on_admission(Admission admission) = 0;  // the end of a hold
  virtual void on_durable() = 0;                       // after a judgement that said `wait`

 protected:
  ~Asker() = default;
};

// Keeps a place in a queue. Dropping it leaves: nobody will be told.
class [[nodiscard]] Hold {
 public:
  Hold() = default;
  explicit Hold(std::shared_ptr<Visitor> visitor) : visitor_(std::move(visitor)) {}
  // For its turn, since then: the time is counted for its job, if it has one.
  Hold(std::shared_ptr<Visitor> visitor, std::shared_ptr<JobTable::Pass> job, Instant since)
      : visitor_(std::move(visitor)), job_(std::move(job)), since_(since) {}
  Hold(Hold&&) noexcept = default;
  Hold& operator=(Hold&& other) noexcept;
  ~Hold() { reset(); }
  void reset();
  explicit operator bool() const { return visitor_ != nullptr; }

 private:
  std::shared_ptr<Visitor> visitor_;
  std::shared_ptr<JobTable::Pass> job_;
  Instant since_{};
};

// What an answer means for this exchange.
struct Judgement {
  OutcomeKind kind = OutcomeKind::local;
  bool retry = false;  // it may be sent again for the client, if it can be
  Hold wait{};         // not empty: the client must not see the answer before on_durable()
};

// Leave to send one request. Dropped without a word, it reports a local failure, so whatever was
// taken with it always comes back. Lives on one loop.
class [[nodiscard]] Permit {
 public:
  struct Body;  // what one forwarded request carries
  Permit() noexcept;
  explicit Permit(std::unique_ptr<Body> body) noexcept;
  Permit(Permit&&) noexcept;
  Permit& operator=(Permit&&) noexcept;
  ~Permit();

  // Whether anything of it has gone to the origin. What has not is given back: its place in the
  // limits, its price.
  void sent(bool is_sent);
  // It uses up some of what is limited by number or by price.
  bool counts() const;
  // The final response head, and what scan() has found in the part of the body that came with it. A
  // success is only taken for one when scanned() or done() is told.
  Judgement answered(const Head& response, std::optional<std::size_t> marker, Asker& asker,
                     Mailbox& mailbox);
  MarkerScan scan(const Head& response) const;  // of the body that follows
  Judgement found(std::size_t marker, Asker& asker, Mailbox& mailbox);
  void scanned();  // nothing was found, and nothing more is looked at

  // Network or local. When nothing was sent, any method may be tried again.
  Judgement failed(OutcomeKind kind, bool nothing_sent, Asker& asker, Mailbox& mailbox);
  void connected();  // a tunnel stands
  void done();       // the exchange is over: its place is free

  bool replayable() const;
  // Of a probe whose outcome is not told yet. Silence beyond this is a failure; of one that has
  // answered, what was not found in its body until then is not waited for: call scanned(). None:
  // there are only the usual time-outs.
  std::optional<Duration> patience(Instant now) const;
  explicit operator bool() const { return body_ != nullptr; }

 private:
  friend class Governor;
  Judgement report(Outcome& outcome, bool safe, Asker* asker, Mailbox* mailbox);

  std::unique_ptr<Body> body_;
};

// Exactly one of the three is set.
struct Admission {
  Permit permit{};
  std::optional<Refusal> refusal{};
  Hold hold{};  // on_admission() will follow
};

}  // namespace sluice
