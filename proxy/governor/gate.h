// One key: its breaker, its pace and the requests that wait for it. Decides with the pure functions
// of policy/ and keeps what they return; what must be done about it (a write to the store, word to
// a waiter, a wake-up) comes back as Effects, to be carried out after the lock is released. Any
// thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/anomaly.h"
#include "policy/breaker.h"
#include "policy/fair_queue.h"
#include "policy/host_state.h"
#include "policy/pacer.h"
#include "proxy/governor/admission.h"
#include "proxy/governor/allowances.h"
#include "proxy/governor/gate_record.h"
#include "proxy/governor/rulebook.h"
#include "proxy/governor/visitor.h"

namespace sluice {

class AnomalyWatch;

// What a forwarded request carries until its outcome is known.
struct Permit::Body {
  Governor& governor;
  std::shared_ptr<Gate> gate;
  Journey journey;
  Ticket ticket{};
  PaceTicket pace{};
  Allowance taken{};                 // empty: nothing, or it is settled
  Instant silence{};                 // of a probe: the end of patience(); Instant{}: it has none
  std::optional<Outcome> outcome{};  // of the head, until the body has been looked at
  bool reported = false;             // and the gate has it
  bool sent = false;                 // something of it has reached the origin
};

class Gate : public std::enable_shared_from_this<Gate> {
 public:
  using Pass = GatePass;
  using By = GatePass::By;
  // What is to be done once the gate is unlocked, in this order.
  struct Effects {
    struct Word {
      std::shared_ptr<Visitor> to;
      Pass pass{};           // forward, probe or refuse
      bool durable = false;  // no decision: its answer may be shown
    };
    std::optional<HostState> save{};     // to the store, then call saved()
    std::optional<HostState> changed{};  // a new phase, trip or cause, for the log and the events
    bool tripped = false;                // `changed`: by another trip
    bool shut = false;                   // `changed`: it let everybody through before
    std::string pace{};                  // what it was learned to be, when that has changed
    std::vector<AnomalyNews> anomalies{};
    Foreseen foreseen = Foreseen::forward;
    std::string would{};  // the same in words and why, once in a while
    std::vector<Word> words{};
    std::optional<Instant> wake{};  // call pump() then
  };
  struct Asked {
    enum class Kind : std::uint8_t { go, held, refused, queue_full };
    Kind kind = Kind::go;
    Pass pass{};
    std::shared_ptr<Visitor> visitor{};  // held
  };
  struct Told {
    bool retry = false;
    std::shared_ptr<Visitor> wait{};  // not null: will be told when it is durable
  };
  struct View {
    HostState state{};
    std::size_t held = 0, in_flight = 0;
    std::string policy{};
    bool observed = false;  // the policy only watches
  };
  // What a list of many keys shows of one: copied without its texts.
  struct Glance {
    std::uint64_t version = 0;  // of the record
    Phase phase = Phase::closed;
    Cause cause = Cause::none;
    Instant until{};  // of an open one
    std::uint32_t level = 0;
    Duration delay{};
    Counts counts{};
    std::size_t held = 0, in_flight = 0;
    std::string policy{};  // that answered last; empty: nobody has asked here
  };
  // `rules`: of the key's policy.
  static Glance glance_at(const HostState& state, const Rules& rules, Instant now);

  Gate(std::string key, Allowances* allowances, AnomalyWatch* watch = nullptr)
      : key_(std::move(key)), allowances_(allowances), watch_(watch) {}
  const std::string& key() const { return key_; }
  // It is about to be asked: among a hundred thousand keys it is in no cache yet, and what it holds
  // comes faster all at once than line by line.
  void fetch() const;

  // False: nothing is known about the key yet, or another process has written since.
  bool is_current(std::uint64_t store_version);
  bool is_known();
  // What the store holds, when it says more than is known here.
  void load(HostState stored, std::uint64_t store_version, const Rules& rules, Instant now,
            Effects& out);

  // `who` is moved from only when it must wait.
  Asked ask(Journey& who, Asker& asker, Mailbox& mailbox, double jitter, Instant now, Effects& out);
  void leave(Visitor& visitor);
  // How a request went. `safe`: it may be sent again as far as it is concerned.
  Told tell(Permit::Body& permit, const Outcome& outcome, bool safe, double jitter, Instant now,
            Asker* asker, Mailbox* mailbox, Effects& out);
  // A good answer's head says that nothing is left. Not null: will be told when that is durable.
  std::shared_ptr<Visitor> tell_exhausted(const Permit::Body& permit, const Outcome& outcome,
                                          Instant now, Asker& asker, Mailbox& mailbox,
                                          Effects& out);
  // A forwarded request is over: its place is free.
  void done(PaceTicket& ticket, Instant now, Effects& out);
  // What goes on that is unusual: to be called about once a second while the board names this gate.
  void tick_anomalies(Instant now, Effects& out);
  // Another book is in force: who waits is under its rules from now on.
  void renew(const std::shared_ptr<const Rulebook>& book, Instant now, Effects& out);
  void pump(double jitter, Instant now, Effects& out);
  // The end of a write: the record's new version, 0 when another process was first (then `stored`
  // is its state), or why it failed.
  void saved(const Result<std::uint64_t>& version, const HostState* stored, bool keep_going,
             Instant now, Effects& out);
  // True if its state has changed since it was last written; then it counts as written.
  std::optional<HostState> take_dirty();
  bool has_waiting();
  bool is_idle(Instant now, Duration quiet);
  View view();
  std::string pace(Instant now);  // in words; empty: nobody has asked here
  Glance glance(const Rules& rules, Instant now);
  bool shut_by_operator(Instant now);

 private:
  using Claim = GateRecord::Claim;

  Asked answer(Journey& who, Asker& asker, Mailbox& mailbox, double jitter, Instant now,
               Effects& out);
  void follow(const Match& match);
  Pass pass(const Journey& who, double jitter, Instant now);
  void take_allowance(const Journey& who, Instant now, Pass& passed);
  std::optional<Pass> out_of_money(const Journey& who);
  void take_back(Claim& claim);
  AnomalyAsk moment(Instant now) const;
  void watch_ask(const AskedUrl& url, Asked::Kind kind, Instant now, Effects& out);
  void watch_answer(const Outcome& outcome, Instant now, Effects& out);
  void act_on_anomalies(Instant now, Effects& out);
  bool closed_by_operator(const HostState& before) const;
  void shut(const OngoingAnomaly& anomaly, Instant now, Effects& out);
  std::string pace_text(Instant now) const;
  void heed(HostState stored, Instant now, Effects& out);
  void adopt(const HostState& stored, const Rules& rules, Instant now, Effects& out);
  Foreseen foresee(const Journey& who, const Decision& decision, Instant now) const;
  void note_watched(const Pass& passed, Instant now, Effects& out);
  std::shared_ptr<Visitor> keep_back(Asker& asker, Mailbox& mailbox);
  void note_pace(const Rules& rules, const PaceMemory& before, const Outcome& why, Effects& out);
  void wake_at(Effects& out, Instant when);
  void count_forward(const Journey& who, Effects& out);
  void count_refused();
  void note_transition(const HostState& before, Instant now, Effects& out);
  void save_soon(Effects& out);
  bool take_retry();
  void enqueue(std::shared_ptr<Visitor> visitor, bool first);
  std::shared_ptr<Visitor> dequeue(std::uint64_t id);
  const Waiter* next_turn(const std::vector<const Rules*>& apart) const;
  std::size_t waiting() const { return queue_ ? queue_->turns.size() : 0; }

  const std::string key_;
  Allowances* const allowances_;  // null: nobody counts
  AnomalyWatch* const watch_;     // null: nobody looks for anomalies
  std::mutex mutex_;              // guards everything below
  HostState state_;
  PaceState pace_;                // its `learned` is kept in state_, too
  const Rules* rules_ = nullptr;  // of the latest request; alive with book_
  std::shared_ptr<const Rulebook> book_;
  // Those who wait: whose turn it is, and who they are. None: nobody waits.
  struct Queue {
    FairQueue turns;
    std::unordered_map<std::uint64_t, std::shared_ptr<Visitor>> visitors{};
  };
  std::unique_ptr<Queue> queue_;
  // Who waits does so for `limits` of its own, not for the key: who comes need not wait behind it.
  bool apart_ = false;
  std::uint64_t last_id_ = 0;
  // Until then, who waits for a block of the limits or the budget does, whatever hold.max_wait
  // says: they are not used up. In the past: no block is on its way.
  Instant block_due_{};
  std::string unpriced_;  // why who waits does, when it waits for a price
  KeyAnomalies unusual_;
  double retry_tokens_ = 3;
  Instant last_used_{};
  Instant said_would_{};
  Instant wake_ = Instant::max();    // when pump() was asked for
  GateRecord record_;                // state_, as the store has it
  std::uint64_t written_up_to_ = 0;  // the latest request that it knows of
  std::string policy_;
};

}  // namespace sluice
