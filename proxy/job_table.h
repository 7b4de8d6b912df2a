// The jobs that this process serves: each with its caps and counts. Any thread; a lock is held for
// the time it takes to count. Bounded: of too many names, those that were silent the longest make
// room, and what finds none is counted together under one name.
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

struct JobRow {
  std::string name;
  JobRules rules;
  JobState state;
  unsigned in_flight = 0;
};

class JobTable {
 private:
  struct Entry {
    JobRules rules;
    JobState state;
    JobState written;  // as far as the store knows
    unsigned in_flight = 0;
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, Entry> jobs;  // guarded by the mutex
  };

 public:
  static constexpr std::size_t kMaxJobs = 4096;
  static constexpr std::string_view kOthers = "(others)";

  // A place among the requests of a job. Dropping it gives the place back.
  class [[nodiscard]] Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept
        : shard_(std::exchange(other.shard_, nullptr)), name_(std::move(other.name_)) {}
    Pass& operator=(Pass&& other) noexcept;
    ~Pass() { leave(); }

    void told(OutcomeKind kind, Instant now);
    void add_cost(std::int64_t micros);
    void add_wait(Duration held);  // one more time that it was held
    void refused();                // by somebody else of ours, after this

   private:
    friend class JobTable;
    Pass(Shard& shard, std::string name) : shard_(&shard), name_(std::move(name)) {}
    void leave();
    template <class Change>
    void change(Change apply);

    Shard* shard_ = nullptr;  // null: of no job
    std::string name_;
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
  std::vector<JobRow> rows();  // in order of their names

 private:
  Shard& shard_of(std::string_view name);
  Entry& find_or_make(Shard& shard, std::string& name, const ClockPair& now);
  const JobRules& rules_of(const std::string& name) const;
  void take_in(Shard& shard, const std::string& name, const JobState& before, const ClockPair& now);

  Store* store_;
  const JobsConfig settings_;
  std::array<Shard, 16> shards_;
};

}  // namespace sluice
