// What a gate does about the unusual, in simulated time: it tells, halves the pace, shuts, and
// comes back by itself.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "policy/breaker.h"
#include "proxy/governor/anomaly_watch.h"
#include "proxy/governor/gate.h"
#include "proxy/policy_dir.h"

using namespace sluice;

namespace {

constexpr Instant t0{1000h};
constexpr double kPrice = 0.005;  // of one request

ClockPair clock(Duration since) { return {t0 + since, UtcTime{480'000h} + since, 7}; }

struct Nobody : Asker {
  void on_admission(Admission) override {}
  void on_durable() override {}
};
struct NoLoop : Mailbox {
  void post(std::function<void()>) override {}
};

AnomalyRules acting(AnomalyAction action) {
  AnomalyRules rules;
  rules.action = action;
  return rules;
}

// A client that asks without ever waiting, its gate, and an origin that counts what reaches it.
class Loop {
 public:
  explicit Loop(const AnomalyRules& rules, Mode mode = Mode::enforce)
      : watch_(rules, Zone(), clock(0s)) {
    Policy base;
    base.rules.mode = mode;
    base.rules.hold.max_wait = 0s;
    base.rules.pace.adapt = Adapt::off;
    book_ = std::make_shared<const Rulebook>(load_policies("", base));
    gate = std::make_shared<Gate>("a.test", nullptr, &watch_);
    Gate::Effects effects;
    gate->load({}, 1, base.rules, t0, effects);
  }

  Loop& ask(Duration since, std::string_view path = "/v1/events") {
    at(since);
    Head head;
    head.method = "GET";
    const Ask ask{.request = head, .host = "a.test", .port = 80, .path = path};
    Journey who;
    who.match = book_->match("a.test", 80, path);
    who.match.book = book_;
    who.arrived = t0 + now_;
    who.url.hash = watch_.url_of(ask);
    who.url.name = watch_.name_of(ask, who.url.hash, t0 + now_);
    Gate::Effects effects;
    auto asked = gate->ask(who, nobody_, loop_, 0, t0 + now_, effects);
    carry_out(effects);
    if (asked.kind != Gate::Asked::Kind::go) return *this;
    ++reached;
    Gate::Effects after;
    gate->done(asked.pass.pace, t0 + now_, after);
    return *this;
  }
  Loop& at(Duration since) {
    while (ticked_ + 1s <= since) {
      now_ = ticked_ += 1s;
      watch_.tick(clock(now_));
      Gate::Effects effects;
      gate->tick_anomalies(t0 + now_, effects);
      carry_out(effects);
    }
    now_ = since;
    return *this;
  }
  Loop& every(Duration gap, Duration from, Duration to) {
    for (Duration when = from; when < to; when += gap) ask(when);
    return *this;
  }
  Phase phase() { return phase_at(gate->view().state, t0 + now_); }
  Gate::View view() { return gate->view(); }
  std::string pace() { return gate->pace(t0 + now_); }
  void operator_closes() {
    HostState closed = operator_close(view().state, t0 + now_);
    closed.version = ++version_;
    Gate::Effects effects;
    gate->load(std::move(closed), version_, Rules{}, t0 + now_, effects);
    carry_out(effects);
  }

  std::shared_ptr<Gate> gate;
  int reached = 0;
  std::string told;
  Duration told_at{};

 private:
  void carry_out(const Gate::Effects& effects) {
    for (const AnomalyNews& news : effects.anomalies) {
      constexpr const char* words[] = {"began", "escalated", "lasts", "pardoned", "ended"};
      if (told.empty()) told_at = now_;
      told += (told.empty() ? "" : "; ") + std::string(words[static_cast<int>(news.what)]) + " " +
              std::string(action_word(news.anomaly.action));
    }
    if (!effects.save) return;
    Gate::Effects after;
    gate->saved(std::uint64_t{++version_}, nullptr, false, t0 + now_, after);
    carry_out(after);
  }

  AnomalyWatch watch_;
  std::shared_ptr<const Rulebook> book_;
  Nobody nobody_;
  NoLoop loop_;
  Duration now_{}, ticked_{};
  std::uint64_t version_ = 0;
};

constexpr Duration kGap = 2s;
constexpr Duration kLength = 2165 * kGap;

}  // namespace

TEST_CASE("gate watch: 2,165 requests for one URL are caught at once and cost less than a dollar") {
  Loop loop(acting(AnomalyAction::open));
  loop.every(kGap, 0s, kLength);
  CHECK(loop.told == "began open");
  CHECK(loop.told_at <= 5min);
  CHECK(loop.reached == 4);
  CHECK(loop.reached * kPrice < 1.0);
  CHECK(loop.phase() == Phase::open);
  const HostState state = loop.view().state;
  CHECK(state.cause == Cause::anomaly);
  CHECK(state.reason ==
        "thrash: it is asked for one URL over and over, 150 times in 5 min: GET /v1/events");
  // The client gives up: it ends by itself, and the key comes back with a probe.
  loop.at(kLength + 5min);
  CHECK(loop.told == "began open; ended open");
  loop.at(kLength + 21min);
  CHECK(loop.phase() == Phase::half_open);
}

TEST_CASE("gate watch: unless told otherwise a loop is told of, and nothing else") {
  Loop loop(AnomalyRules{});
  loop.every(kGap, 0s, kLength);
  CHECK(loop.told == "began alert; lasts alert");
  CHECK(loop.told_at == 3 * kGap);
  CHECK(loop.reached == 2165);
  CHECK(loop.phase() == Phase::closed);
}

TEST_CASE("gate watch: a loop that is slowed and goes on is shut") {
  Loop loop(acting(AnomalyAction::throttle));
  loop.every(kGap, 0s, kLength);
  CHECK(loop.told == "began throttle; escalated open");
  CHECK(loop.reached < 150);  // five minutes at half the pace
  CHECK(loop.phase() == Phase::open);
}

TEST_CASE("gate watch: half the pace is half, is shown, and is over with its reason") {
  AnomalyRules rules = acting(AnomalyAction::throttle);
  rules.escalate_after = 0s;
  rules.burst.learn = 0s;
  rules.thrash.enabled = false;
  Loop loop(rules);
  // 60 a minute, where nothing is usual: told of at the eleventh.
  for (int i = 0; i < 600; ++i) loop.ask(i * 1s, "/" + std::to_string(i));
  CHECK(loop.told == "began throttle");
  CHECK(loop.pace().find("half its pace for an anomaly, one request per") != std::string::npos);
  CHECK(loop.reached < 150);  // half of the eleven in its first minute
  CHECK(loop.reached > 40);
  loop.at(16min);
  CHECK(loop.told == "began throttle; ended throttle");
  CHECK(loop.pace().find("half") == std::string::npos);
  const int before = loop.reached;
  loop.ask(16min, "/a").ask(16min, "/b").ask(16min, "/c");
  CHECK(loop.reached == before + 3);
}

TEST_CASE("gate watch: what an operator closes stays closed, though the loop goes on") {
  Loop loop(acting(AnomalyAction::open));
  loop.every(kGap, 0s, 1min);
  REQUIRE(loop.phase() == Phase::open);
  loop.operator_closes();
  const int before = loop.reached;
  loop.every(kGap, 1min, 31min);
  CHECK(loop.phase() == Phase::closed);
  CHECK(loop.reached == before + 900);
  CHECK(loop.told == "began open; pardoned alert");
}

TEST_CASE("gate watch: a policy that observes lets everything through") {
  Loop loop(acting(AnomalyAction::open), Mode::observe);
  loop.every(kGap, 0s, kLength);
  CHECK(loop.told == "began alert; lasts alert");
  CHECK(loop.reached == 2165);
}

TEST_CASE("gate watch: a gate in which something goes on is not forgotten") {
  Loop loop(AnomalyRules{});
  loop.every(kGap, 0s, 10s);
  Gate::Effects effects;
  if (loop.gate->take_dirty()) loop.gate->saved(std::uint64_t{9}, nullptr, false, t0, effects);
  CHECK(!loop.gate->is_idle(t0 + 1h, 10min));
  loop.at(1h);
  CHECK(loop.gate->is_idle(t0 + 1h, 10min));
}

TEST_CASE("gate watch: what tells one request from another") {
  const auto head = [](std::string_view method, std::vector<Field> fields = {},
                       std::uint64_t length = 0) {
    Head out;
    out.method = method;
    out.fields = std::move(fields);
    if (length > 0) out.framing = Framing::length;
    out.length = length;
    return out;
  };
  const Head get = head("GET"), post = head("POST"), longer = head("POST", {}, 9),
             range = head("GET", {{"Range", "bytes=0-9"}}),
             etag = head("GET", {{"If-None-Match", "\"x\""}}),
             since = head("GET", {{"if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT"}}),
             other = head("GET", {{"X-Request-Id", "7"}});
  AnomalyWatch watch(AnomalyRules{}, Zone(), clock(0s));
  const auto hash = [&](const Ask& ask) { return watch.url_of(ask); };
  const Ask first{.request = get, .host = "a.test", .port = 80, .path = "/x?a=1"};
  const auto ask_with = [&](const Head& which) {
    return Ask{.request = which, .host = "a.test", .port = 80, .path = "/x?a=1"};
  };
  Ask tunnel = first, path = first, host = first, port = first, client = first, job = first;
  tunnel.tunnel = true;
  path.path = "/x?a=2";
  host.host = "b.test";
  port.port = 81;
  client.client = 5;
  job.job = "nightly";
  REQUIRE(hash(first) != 0);
  CHECK(hash(first) == hash(ask_with(get)));
  CHECK(hash(first) == hash(ask_with(other)));
  for (const Ask& different :
       {ask_with(post), ask_with(longer), ask_with(range), path, host, port, client, job}) {
    CHECK(hash(different) != hash(first));
    CHECK(hash(different) != 0);
  }
  Ask run = first, next_run = first, other_command = first;
  run.job = "curl-4711";
  next_run.job = "curl-4712";
  other_command.job = "wget-4711";
  CHECK(hash(run) != hash(next_run));
  for (Ask* unnamed : {&run, &next_run, &other_command}) unnamed->job_numbered = true;
  CHECK(hash(run) == hash(next_run));
  CHECK(hash(run) != hash(other_command));
  for (const Ask& uncounted : {tunnel, ask_with(etag), ask_with(since)})
    CHECK(hash(uncounted) == 0);
  CHECK(watch.name_of(first, watch.url_of(first), t0).empty());
  watch.count(hash(first), t0);
  CHECK(watch.name_of(first, watch.url_of(first), t0) == "GET /x?…");
}
