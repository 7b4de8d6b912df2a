// What the running proxy knows: the keys that the store remembers, with what the governor knows
// better about those in use, the events, and the emergency stop. Orders go into the store, where
// every process sees them at its next decision. Asked on the admin thread; orders end on the
// store's.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "proxy/admin/source.h"
#include "proxy/alerts/channel.h"
#include "proxy/governor/governor.h"
#include "store/clock_pair.h"
#include "store/hosts.h"

namespace sluice {

// What only the running process knows.
struct ProcessFacts {
  UtcTime started{};
  std::function<Readiness()> readiness;
  std::function<std::uint64_t()> clients;
  std::function<bool()> stopped;       // as the workers have it
  const AlertTally* alerts = nullptr;  // null: off
};

class GovernorSource : public AdminSource {
 public:
  GovernorSource(Governor& governor, std::string state_directory, ProcessFacts facts);
  ~GovernorSource() override;  // waits for the orders that the store has not carried out

  Readiness readiness() override { return facts_.readiness(); }
  Totals totals() override;
  Result<KeyPage> keys(std::string_view after, std::size_t limit) override;
  std::optional<KeyDetail> key(std::string_view key) override;
  Budget budget() override;
  std::vector<Anomaly> anomalies() override;
  std::vector<Job> jobs() override;
  std::vector<PolicyProblem> policy_problems() override;
  Health store_health() override { return store_.health(); }
  Result<std::vector<StoredEvent>> events(std::uint64_t after, std::size_t limit) override;

  Result<std::string> order_key(const std::string& named) override;
  bool knows(const std::string& key) override;
  void open(std::string key, Duration length, std::string reason, Done done) override;
  void close(std::string key, Done done) override;
  void stop(std::string reason, Done done) override;
  void resume(Done done) override;
  void test_alert(Done done) override;

 private:
  using Change = std::function<HostState(HostState, Instant now)>;
  KeyRow row_of(std::string key, const HostState& stored, const ClockPair& now);
  StopState stop_state();
  void sum_up(const std::vector<KeyRow>& rows, bool first, bool last);
  Result<std::vector<std::string>> stored_keys(const std::string& key);
  void change(const std::string& key, const Change& change, const std::string& said,
              const Done& done);
  void change_all(const std::vector<std::string>& keys, const Change& change,
                  const std::string& said, const Done& done);
  void tell(std::string key, std::string text);

  Governor& governor_;
  Store& store_;
  const std::string state_directory_;
  const ProcessFacts facts_;
  // Of all keys: added up page by page, and told when the last one has been read.
  struct Sums {
    std::uint64_t in_flight = 0, held = 0;
  };
  Sums counting_, counted_;
  std::mutex writes_mutex_;  // guards the next one
  std::size_t writes_ = 0;   // under way in the store
  std::condition_variable no_writes_;
};

}  // namespace sluice
