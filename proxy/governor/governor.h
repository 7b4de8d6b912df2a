// Decides about every request of every worker: finds its policy and its key, asks the gate, carries
// out what the gate wants done. What is shared: the gates (a lock each), the store and the rulebook
// (immutable, replaced whole). Every member may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "proxy/governor/admission.h"
#include "proxy/governor/agenda.h"
#include "proxy/governor/allowances.h"
#include "proxy/governor/anomaly_board.h"
#include "proxy/governor/anomaly_watch.h"
#include "proxy/governor/gate_table.h"
#include "proxy/governor/rulebook.h"
#include "proxy/job_table.h"
#include "proxy/lost_event.h"
#include "proxy/tally.h"
#include "store/store.h"
#include "store/sweep.h"

namespace sluice {

class Governor {
 public:
  struct Options {
    bool go_on_without_store = false;  // store.on_failure = "local"
    JobsConfig jobs{};
    AnomalyRules anomaly{};
    Zone anomaly_zone{};  // of its off_hours
    BudgetConfig budget{};
    Zone zone{};  // of the budget's days
    OnLost on_lost{};
  };

  Governor(Store& store, std::shared_ptr<const Rulebook> rules, Options options);
  ~Governor();

  // Which policy answers, whatever becomes of the request.
  Match match(std::string_view host, std::uint16_t port, std::string_view path) const;
  // Finds the policy and the key; asks nothing yet.
  Errand prepare(const Ask& ask);
  Admission admit(Errand errand, Asker& asker, Mailbox& mailbox);
  // For a request that was refused and may be sent again: it takes its turn before newcomers.
  Admission admit_again(Permit permit, Asker& asker, Mailbox& mailbox);

  void replace_rules(std::shared_ptr<const Rulebook> rules);
  std::shared_ptr<const Rulebook> rules() const;
  GateTable& gates() { return gates_; }
  JobTable& jobs() { return jobs_; }
  AnomalyBoard& anomalies() { return board_; }
  Store& store() { return store_; }
  Tally& tally() { return tally_; }
  const Options& options() const { return options_; }

 private:
  friend class Permit;
  Judgement tell(Permit::Body& permit, const Outcome& outcome, bool safe, Asker* asker,
                 Mailbox* mailbox);
  Hold tell_exhausted(const Permit::Body& permit, const Outcome& outcome, Asker& asker,
                      Mailbox& mailbox);
  void done(Permit::Body& permit);
  // What was taken with it: spent, or given back. `response`: null when there is none.
  void settle(Permit::Body& permit, const Head* response);
  Admission grant(const std::shared_ptr<Gate>& gate, Journey&& who, const Gate::Pass& pass);
  static void note_refused(const Journey& who);
  Refusal refusal_by(Gate& gate, const Gate::Pass& pass, bool held);
  const std::shared_ptr<const Rulebook>& own_rules() const;
  std::shared_ptr<Gate> gate_for(std::string_view key, Instant now);
  bool refresh(Gate& gate, Gate::Effects& effects);
  void carry_out(const std::shared_ptr<Gate>& gate, Gate::Effects&& effects);
  void record(const Gate& gate, const HostState& state, bool shut);
  void save(const std::shared_ptr<Gate>& gate, const HostState& state);
  void saved(const std::shared_ptr<Gate>& gate, const Result<std::uint64_t>& version);
  void deliver(const std::shared_ptr<Gate>& gate, Gate::Effects::Word word);
  void wake(Gate& gate);
  void wake_at(const std::shared_ptr<Gate>& gate, Instant when);
  void flush();
  void watch_anomalies();
  void tell_news();
  void keep_house();

  Store& store_;
  const Options options_;
  const std::string salt_;
  mutable std::mutex rules_mutex_;
  std::shared_ptr<const Rulebook> rules_;  // guarded by rules_mutex_
  std::atomic<std::uint64_t>
      rules_generation_;  // changes with rules_; never the same in two governors
  Tally tally_;
  JobTable jobs_;
  Allowances allowances_;
  AnomalyWatch watch_;
  AnomalyBoard board_;
  GateTable gates_;
  std::mutex writes_mutex_;  // guards the next one
  std::size_t writes_ = 0;   // under way in the store
  std::condition_variable no_writes_;
  Sweep sweep_;
  unsigned seconds_ = 0;            // the agenda's thread only, as the next one
  std::uint64_t told_version_ = 0;  // of the store, when those who wait last heard of it
  std::mutex agenda_mutex_;         // guards the pointer: it goes before the others do
  std::unique_ptr<Agenda> agenda_;  // last: its thread uses all of the above
};

}  // namespace sluice
