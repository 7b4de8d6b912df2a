// A key's state as the store has it: what was read or written last, what is on its way there, and
// who may only go on when it has arrived. Puts together what two processes have made of one state.
// It decides nothing and has no lock: it is its gate's, which holds its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "policy/host_state.h"
#include "policy/result.h"
#include "proxy/governor/visitor.h"

namespace sluice {

class GateRecord {
 public:
  // A probe that goes when its lease is in the store.
  struct Claim {
    std::shared_ptr<Visitor> visitor;
    GatePass pass;
  };
  // Those who wait for one write.
  struct Due {
    std::vector<std::shared_ptr<Visitor>> told;  // their answers may be shown then
    std::vector<Claim> claims;
  };

  bool is_known() const { return known_; }
  // False: nothing was read yet, or another process has written since.
  bool is_current(std::uint64_t store_version) const { return known_ && seen_ == store_version; }
  // A write is under way: its end tells which came first, and only then is there anything to merge.
  bool is_saving() const { return saving_; }
  // Nothing is allowed that a crash could still take back.
  bool is_durable() const { return !tighter_now_ && !tighter_next_; }
  bool is_settled() const { return !saving_ && !dirty_; }
  std::size_t claims() const { return now_.claims.size() + next_.claims.size(); }

  void read_first(const HostState& stored, std::uint64_t store_version);
  // True: it says more than is known here, and merge() is to be called.
  bool is_news(const HostState& stored, std::uint64_t store_version);
  // The word of another process and ours.
  HostState merge(HostState ours, const HostState& stored);

  void touch() { dirty_ = true; }           // the state has changed: to be written some time
  void tighten() { tighter_next_ = true; }  // it allows less: begin() must follow
  void wait_for_it(std::shared_ptr<Visitor> told);
  void wait_for_it(Claim claim) { next_.claims.push_back(std::move(claim)); }

  // True: `state` is to be written, then end() called. False: it will be, after the write that is
  // under way.
  bool begin(const HostState& state);
  // The same for what was only touched; false: there is nothing, or no haste.
  bool begin_flush(const HostState& state);

  // The end of a write: the new version of the record, 0 when another process was first. Who waited
  // for it; none of them may go on if it was not written.
  Due end(const Result<std::uint64_t>& version);
  // After an end() at which another process was first, and a merge(): those who waited wait for the
  // next write. Returns all claims: the state they were taken on does not hold.
  std::vector<Claim> lose(Due waited);
  // After an end(): begin() must follow.
  bool wants_write();
  // Whether the write under way allows less.
  bool is_tightening() const { return tighter_now_; }

 private:
  bool known_ = false;
  bool dirty_ = false;
  std::uint64_t seen_ = 0;  // the store's version when the state was read
  bool saving_ = false;
  bool save_again_ = false;
  bool tighter_now_ = false, tighter_next_ = false;  // this write, the next one allows less
  bool lost_tighter_ = false;                        // the one that was lost did
  Due now_, next_;                                   // wait for this write, for the next
  HostState base_;                      // what the store held when it was last read or written
  std::unique_ptr<HostState> writing_;  // what is being written, while saving_
};

}  // namespace sluice
