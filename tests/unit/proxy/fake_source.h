// A source whose every answer a test can set: for the admin side's own tests and for the page's. It
// may be changed while it is being asked.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "proxy/admin/source.h"

namespace sluice::testing {

class FakeSource : public AdminSource {
 public:
  struct State {
    Readiness readiness;
    Totals totals;
    std::map<std::string, KeyDetail, std::less<>> keys;
    Budget budget;
    std::vector<Anomaly> anomalies;
    std::vector<Job> jobs;
    std::vector<PolicyProblem> policy_problems;
    Health health;
    std::vector<StoredEvent> events;
    std::vector<std::string> orders;  // as they came: "open a.test 600 s reason"
    std::string failing;              // orders and reads of keys fail with this; empty: they work
    std::size_t pages_read = 0;
    bool busy = false;  // counters rise with every copy of the keys
  };

  // Changes something under the lock.
  template <class Edit>
  auto with(Edit edit) {
    const std::lock_guard guard(mutex_);
    return edit(state_);
  }
  void tell(EventKind kind, std::string key, std::string text);

  Readiness readiness() override;
  Totals totals() override;
  Result<KeyPage> keys(std::string_view after, std::size_t limit) override;
  std::optional<KeyDetail> key(std::string_view key) override;
  Budget budget() override;
  std::vector<Anomaly> anomalies() override;
  std::vector<Job> jobs() override;
  std::vector<PolicyProblem> policy_problems() override;
  Health store_health() override;
  Result<std::vector<StoredEvent>> events(std::uint64_t after, std::size_t limit) override;
  Result<std::string> order_key(const std::string& named) override { return named; }
  bool knows(const std::string& key) override { return key != "unknown.test"; }
  void open(std::string key, Duration length, std::string reason, Done done) override;
  void close(std::string key, Done done) override;
  void stop(std::string reason, Done done) override;
  void resume(Done done) override;
  void test_alert(Done done) override;

 private:
  Result<std::string> ordered(std::string order, std::string key, std::string said);

  std::mutex mutex_;
  State state_;
};

// A key as it would be after an answer with this status that named a time.
KeyDetail shut_key(const std::string& key, Duration left, std::uint16_t status, std::string said);
KeyDetail closed_key(std::string key, std::uint64_t requests);

}  // namespace sluice::testing
