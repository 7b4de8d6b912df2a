// The jobs that this process serves, and the runs of each: every run with its caps and counts. Any
// thread; a lock is held for the time it takes to count. Bounded: of too many names, those that
// were silent the longest make room, and what finds none is counted together under one name.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/job.h"
#include "proxy/config.h"
#include "proxy/refusal.h"
#include "store/clock_pair.h"
#include "store/store.h"

namespace sluice {

// Who asks, as its user name and `sluice exec` say.
struct JobClaim {
  std::string_view name;           // empty: no job, and nothing is counted
  std::string_view run{};          // empty: it does not name its runs
  std::uint64_t max_requests = 0;  // of its own will; the smaller one holds. 0: none
};

struct JobRow {  // of one run
  std::string name;
  JobRules rules;
  JobState state;
  unsigned in_flight = 0;
};

class JobTable {
 private:
  struct Entry {  // one run of a job
    std::string name;
    JobRules rules;
    JobState state;
    JobState written;  // as far as the store knows
    unsigned in_flight = 0;
  };
  struct Shard {
    std::mutex mutex;                                     // guards what follows
    std::unordered_map<std::string, Entry> jobs;          // by their places
    std::unordered_map<std::string, unsigned> under_way;  // requests by job, of all its runs
  };

 public:
  static constexpr std::size_t kMaxJobs = 4096;
  static constexpr std::string_view kOthers = "(others)";

  // A place among the requests of a job. Dropping it gives the place back.
  class [[nodiscard]] Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept
        : shard_(std::exchange(other.shard_, nullptr)), place_(std::move(other.place_)) {}
    Pass& operator=(Pass&& other) noexcept;
    ~Pass() { leave(); }

    void told(OutcomeKind kind, Instant now);
    void add_cost(std::int64_t micros);
    void add_wait(Duration held);  // one more time that it was held
    void refused();                // by somebody else of ours, after this

   private:
    friend class JobTable;
    Pass(Shard& shard, std::string place) : shard_(&shard), place_(std::move(place)) {}
    void leave();
    template <class Change>
    void change(Change apply);

    Shard* shard_ = nullptr;  // null: of no job
    std::string place_;
  };
  struct Entrance {
    Pass pass{};
    std::optional<Refusal> refusal{};  // then the pass is of no job
  };

  // The store may be null: then nothing outlives the process.
  JobTable(Store* store, JobsConfig settings);

  Entrance enter(const JobClaim& claim, const ClockPair& now);
  // About once a second: writes down what has changed, and takes in what other processes on the
  // store have counted.
  void flush(const ClockPair& now);
  // In order of their names; of a job, the runs that go on at the same time as its latest one.
  std::vector<JobRow> rows();
  // Of one run, for when it is over.
  JobState state_of(const std::string& name, const std::string& run, const ClockPair& now);

 private:
  Shard& shard_of(std::string_view name);
  Entry& find_or_make(Shard& shard, const JobClaim& claim, std::string& place,
                      const ClockPair& now);
  const JobRules& rules_of(const std::string& name) const;
  void take_in(Shard& shard, const std::string& place, const std::string& name,
               const JobState& before, const ClockPair& now);

  Store* store_;
  const JobsConfig settings_;
  std::array<Shard, 16> shards_;
};

}  // namespace sluice
