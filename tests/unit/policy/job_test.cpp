// Jobs as scripts: what they may do, when they have failed, and what a restart is.
#include "policy/job.h"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

constexpr Instant t0{1000h};
using Kind = OutcomeKind;

class Script {
 public:
  explicit Script(JobRules rules) : rules_(rules) {}
  Script& at(Duration when) {
    now_ = t0 + when;
    return *this;
  }
  Script& run(const char* name) {
    run_ = name;
    return *this;
  }
  Script& asks(JobVerdict expected) {
    CAPTURE((now_ - t0) / 1s);
    const JobVerdict verdict =
        job_ask(rules_, state_, run_, {in_flight_, in_flight_ + others_}, now_);
    CHECK(verdict == expected);
    if (verdict == JobVerdict::go) ++in_flight_;
    return *this;
  }
  Script& told(Kind kind, int times = 1) {
    for (int i = 0; i < times; ++i) job_told(rules_, state_, kind, now_);
    return *this;
  }
  Script& done() {
    --in_flight_;
    return *this;
  }
  Script& others(unsigned count) {  // under way in other runs
    others_ = count;
    return *this;
  }
  Script& goes(Kind kind, int times = 1) {
    for (int i = 0; i < times; ++i) asks(JobVerdict::go).told(kind).done();
    return *this;
  }
  const JobState& state() const { return state_; }

 private:
  JobRules rules_;
  JobState state_;
  std::string run_;
  unsigned in_flight_ = 0, others_ = 0;
  Instant now_ = t0;
};

}  // namespace

TEST_CASE("job: fails after twenty failures in a row, and stays so until it restarts") {
  Script script({});
  script.at(0s).goes(Kind::server_error, 19).goes(Kind::success).goes(Kind::network, 19);
  script.asks(JobVerdict::go).told(Kind::rate_limited).done();
  script.asks(JobVerdict::has_failed);
  SUBCASE("a late success does not lift it") {
    script.told(Kind::success).asks(JobVerdict::has_failed);
  }
  SUBCASE("asking in vain does not prolong it") {
    script.at(5min).asks(JobVerdict::has_failed).at(10min - 1s).asks(JobVerdict::has_failed);
    script.at(10min).asks(JobVerdict::go);
    CHECK(script.state().failures == 0);
  }
  SUBCASE("nor does it make one restart that names its runs") {
    script.run("a").goes(Kind::network, 20).asks(JobVerdict::has_failed);
    script.at(1h).asks(JobVerdict::has_failed);
  }
}

TEST_CASE("job: what says nothing about a job") {
  Script script({.fail_after = 2});
  script.goes(Kind::server_error).goes(Kind::neutral, 50).goes(Kind::local, 50);
  CHECK(script.state().failures_in_a_row == 1);
  script.goes(Kind::server_error).asks(JobVerdict::has_failed);
}

TEST_CASE("job: fail_after = 0 never fails") {
  Script({.fail_after = 0}).goes(Kind::server_error, 1000).asks(JobVerdict::go);
}

TEST_CASE("job: so many requests in a run") {
  Script script({.max_requests = 3});
  script.goes(Kind::success, 3).asks(JobVerdict::too_many);
  SUBCASE("silence starts a new one") {
    script.at(9min).asks(JobVerdict::too_many).at(10min).asks(JobVerdict::go);
    CHECK(script.state().requests == 1);
  }
}

TEST_CASE("job: one that names its runs restarts with a new name, never by silence") {
  Script script({.max_requests = 1});
  script.run("a").goes(Kind::success).asks(JobVerdict::too_many);
  script.at(10h).asks(JobVerdict::too_many);
  script.run("b").asks(JobVerdict::go);
}

TEST_CASE("job: so many at once") {
  Script script({.max_concurrency = 2});
  script.asks(JobVerdict::go).asks(JobVerdict::go).asks(JobVerdict::too_much);
  script.done().asks(JobVerdict::go).asks(JobVerdict::too_much);
  CHECK(script.state().refused == 2);
  CHECK(script.state().requests == 3);
}

TEST_CASE("job: a long request is no silence") {
  Script script({.max_requests = 1});
  script.asks(JobVerdict::go).at(1h).asks(JobVerdict::too_many);
  script.done().at(2h).asks(JobVerdict::go);
}

TEST_CASE("job: so many at once, in all of its runs together") {
  Script script({.max_concurrency = 2});
  script.run("a").others(1).asks(JobVerdict::go).asks(JobVerdict::too_much);
  script.others(0).asks(JobVerdict::go);
}

TEST_CASE("job: a run that begins with a refusal has begun") {
  Script script({.max_concurrency = 1});
  script.others(1).asks(JobVerdict::too_much).asks(JobVerdict::too_much);
  CHECK(script.state().refused == 2);
}

TEST_CASE("job: other runs under way do not keep one from restarting") {
  Script script({.max_requests = 1});
  script.goes(Kind::success).others(3).asks(JobVerdict::too_many);
  script.at(10min).asks(JobVerdict::go);
}

TEST_CASE("job: a run is past when another has started since it was heard of") {
  JobState state;
  state.last_seen = t0;
  CHECK(job_run_is_past(state, t0 + 1s));
  CHECK_FALSE(job_run_is_past(state, t0));
}
