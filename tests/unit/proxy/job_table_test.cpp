#include "proxy/job_table.h"

#include <doctest/doctest.h>

#include <thread>

#include "proxy/config_reader.h"
#include "store/memory.h"

using namespace sluice;

namespace {

ClockPair clock(Duration since) { return {Instant{100h} + since, UtcTime{1000h} + since, 7}; }

JobsConfig capped(std::uint64_t max_requests) {
  JobsConfig config;
  config.every.max_requests = max_requests;
  return config;
}

std::string reason_of(JobTable& jobs, const JobClaim& claim, Duration since = 0s) {
  const auto entrance = jobs.enter(claim, clock(since));
  return entrance.refusal ? std::string(entrance.refusal->reason) : "";
}

}  // namespace

TEST_CASE("jobs: without a name nothing is asked or counted") {
  JobTable jobs(nullptr, capped(1));
  for (int i = 0; i < 5; ++i) CHECK(reason_of(jobs, {""}) == "");
  CHECK(jobs.rows().empty());
}

TEST_CASE("jobs: refusals say which job and when it may go on") {
  JobsConfig config = capped(2);
  config.named["nightly"] = {.max_concurrency = 1, .fail_after = 1};
  JobTable jobs(nullptr, config);
  CHECK(reason_of(jobs, {"a"}) == "");
  CHECK(reason_of(jobs, {"a"}) == "");
  CHECK(reason_of(jobs, {"a"}, 1min) == "job-limit");
  const auto limited = jobs.enter({"a"}, clock(5min));
  REQUIRE(limited.refusal);
  CHECK(limited.refusal->status == 429);
  CHECK(limited.refusal->reason == "job-limit");
  CHECK(limited.refusal->detail ==
        "job a has sent the 2 requests it may send; it may go on in 5 min or under another "
        "name");
  CHECK(limited.refusal->retry_after_s == 300);
  CHECK(reason_of(jobs, {"a"}, 10min) == "");
  CHECK(reason_of(jobs, {"b"}) == "");

  auto first = jobs.enter({"nightly"}, clock(0s));
  CHECK(reason_of(jobs, {"nightly"}) == "job-limit");
  first.pass.told(OutcomeKind::server_error, clock(1s).mono);
  first = {};
  CHECK(reason_of(jobs, {"nightly"}) == "job-failed");
  CHECK(reason_of(jobs, {"nightly", "another-run"}) == "");
}

TEST_CASE("jobs: what exec asked for holds where it is less") {
  JobTable jobs(nullptr, capped(2));
  CHECK(reason_of(jobs, {"a", "r1", 1}) == "");
  CHECK(reason_of(jobs, {"a", "r1", 1}) == "job-limit");
  CHECK(reason_of(jobs, {"b", "r1", 50}) == "");
  CHECK(reason_of(jobs, {"b", "r1", 50}) == "");
  CHECK(reason_of(jobs, {"b", "r1", 50}) == "job-limit");
}

TEST_CASE("jobs: a request that another gate refused is no request of the job") {
  JobTable jobs(nullptr, capped(1));
  for (int i = 0; i < 3; ++i) {
    auto entrance = jobs.enter({"a"}, clock(0s));
    REQUIRE_FALSE(entrance.refusal);
    entrance.pass.refused();
  }
  CHECK(jobs.rows()[0].state.refused == 3);
  CHECK(reason_of(jobs, {"a"}) == "");
}

TEST_CASE("jobs: how often and how long one waited is remembered") {
  MemoryStore store;
  {
    JobTable jobs(&store, {});
    auto entrance = jobs.enter({"a", "r1"}, clock(0s));
    entrance.pass.add_wait(2s);
    entrance.pass.add_wait(500ms);
    jobs.flush(clock(1s));
  }
  JobTable again(&store, {});
  const auto entrance = again.enter({"a", "r1"}, clock(2s));
  CHECK(again.rows()[0].state.held == 2);
  CHECK(again.rows()[0].state.waited == 2500ms);
}

TEST_CASE("jobs: bounded, whatever names come") {
  JobTable jobs(nullptr, {});
  std::vector<JobTable::Pass> held;
  for (std::size_t i = 0; i < 3 * JobTable::kMaxJobs; ++i) {
    held.push_back(std::move(jobs.enter({"job-" + std::to_string(i)}, clock(0s)).pass));
  }
  CHECK(jobs.rows().size() <= JobTable::kMaxJobs + 16);
  std::uint64_t requests = 0;
  for (const JobRow& row : jobs.rows()) requests += row.state.requests;
  CHECK(requests == 3 * JobTable::kMaxJobs);
  held.clear();
  for (const JobRow& row : jobs.rows()) CHECK(row.in_flight == 0);
  CHECK(reason_of(jobs, {"new"}, 1s) == "");
  const auto rows = jobs.rows();
  CHECK(std::any_of(rows.begin(), rows.end(), [](const JobRow& r) { return r.name == "new"; }));
}

TEST_CASE("jobs: counts outlive the process") {
  MemoryStore store;
  {
    JobTable jobs(&store, capped(3));
    for (int i = 0; i < 2; ++i) CHECK(reason_of(jobs, {"a", "r1"}) == "");
    jobs.flush(clock(1s));
  }
  JobTable jobs(&store, capped(3));
  CHECK(reason_of(jobs, {"a", "r1"}, 2s) == "");
  CHECK(reason_of(jobs, {"a", "r1"}, 2s) == "job-limit");
  CHECK(reason_of(jobs, {"a", "r2"}, 2s) == "");
}

TEST_CASE("jobs: two processes on one store count together") {
  MemoryStore store;
  JobTable one(&store, capped(5)), two(&store, capped(5));
  for (int second = 0; second < 2; ++second) {
    CHECK(reason_of(one, {"a", "r"}) == "");
    CHECK(reason_of(two, {"a", "r"}) == "");
    for (int i = 0; i < 2; ++i) {
      one.flush(clock(1s));
      two.flush(clock(1s));
    }
  }
  CHECK(reason_of(one, {"a", "r"}) == "");
  one.flush(clock(2s));
  CHECK(reason_of(two, {"a", "r"}) == "");  // not heard yet
  two.flush(clock(3s));
  CHECK(reason_of(two, {"a", "r"}) == "job-limit");
}

TEST_CASE("jobs: two runs at once count each for itself") {
  MemoryStore store;
  JobTable jobs(&store, capped(0));
  for (int i = 0; i < 2; ++i) {
    CHECK(reason_of(jobs, {"a", "r1", 2}, 1s * i) == "");
    CHECK(reason_of(jobs, {"a", "r2", 3}, 1s * i) == "");
    jobs.flush(clock(1s * i));
  }
  CHECK(reason_of(jobs, {"a", "r1", 2}, 2s) == "job-limit");
  CHECK(reason_of(jobs, {"a", "r2", 3}, 2s) == "");
  CHECK(jobs.state_of("a", "r1", clock(3s)).requests == 2);
  CHECK(jobs.state_of("a", "r1", clock(3s)).refused == 1);
  CHECK(jobs.state_of("a", "r2", clock(3s)).requests == 3);
  CHECK(jobs.state_of("a", "r3", clock(3s)).requests == 0);
  CHECK(jobs.rows().size() == 2);
  jobs.flush(clock(3s));
  JobTable again(&store, capped(0));  // after a restart
  CHECK(again.state_of("a", "r1", clock(4s)).requests == 2);
  CHECK(reason_of(again, {"a", "r2", 3}, 4s) == "job-limit");
  CHECK(reason_of(again, {"a", "r1", 2}, 4s) == "job-limit");
}

TEST_CASE("jobs: what may be under way at once is for all runs together") {
  JobsConfig config;
  config.every.max_concurrency = 2;
  JobTable jobs(nullptr, config);
  auto first = jobs.enter({"a", "r1"}, clock(0s));
  auto second = jobs.enter({"a", "r2"}, clock(0s));
  CHECK(reason_of(jobs, {"a", "r1"}) == "job-limit");
  CHECK(reason_of(jobs, {"a"}) == "job-limit");
  CHECK(reason_of(jobs, {"b", "r1"}) == "");
  first = {};
  CHECK(reason_of(jobs, {"a"}) == "");
}

TEST_CASE("jobs: a run that was over when another began is not shown") {
  JobTable jobs(nullptr, {});
  CHECK(reason_of(jobs, {"a", "r1"}, 0s) == "");
  CHECK(reason_of(jobs, {"a", "r2"}, 1s) == "");
  auto rows = jobs.rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].state.run == "r2");
  const auto late = jobs.enter({"a", "r1"}, clock(2s));
  CHECK(jobs.rows().size() == 2);
}

TEST_CASE("jobs: many threads, none lost") {
  JobTable jobs(nullptr, capped(1000));
  std::atomic<int> went{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        auto entrance = jobs.enter({"a"}, clock(0s));
        if (entrance.refusal) continue;
        ++went;
        entrance.pass.told(OutcomeKind::success, clock(0s).mono);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(went == 1000);
  CHECK(jobs.rows()[0].in_flight == 0);
  CHECK(jobs.rows()[0].state.successes == 1000);
}

TEST_CASE("jobs: as sluice.toml says") {
  const auto loaded = read_config_text(
      "[jobs]\nmax_requests = 7\n[jobs.named.nightly]\nfail_after = 3\nrestart_after = \"1h\"\n",
      "sluice.toml");
  REQUIRE(loaded.problems.empty());
  CHECK(loaded.config.jobs.every.max_requests == 7);
  CHECK(loaded.config.jobs.every.fail_after == 20);
  const JobRules& nightly = loaded.config.jobs.named.at("nightly");
  CHECK(nightly.max_requests == 7);
  CHECK(nightly.fail_after == 3);
  CHECK(nightly.restart_after == 1h);
}
