// Which events are alerts, which keys stay shut, what is sent, and what a webhook's address gives
// away.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "proxy/alerts/body.h"
#include "proxy/alerts/event_alert.h"
#include "proxy/alerts/slow_open.h"
#include "proxy/alerts/webhook_url.h"
#include "store/blocking.h"
#include "store/hosts.h"
#include "store/memory.h"
#include "store/notice.h"
#include "store/sweep.h"

using namespace sluice;

namespace {

const ClockPair kNow{Instant{std::chrono::hours(100)}, UtcTime{std::chrono::hours(500000)}, 42};

ClockPair at(Duration after) { return {kNow.mono + after, kNow.utc + after, kNow.boot}; }

std::string told_of(const Event& event) {
  const auto alert = alert_of(event);
  return alert ? std::string(alert_word(alert->kind)) : "";
}

HostState shut(Instant since, Instant until, Instant closed_before = {}) {
  HostState state;
  state.phase = Phase::open;
  state.cause = Cause::named_time;
  state.status = 429;
  state.opened_at = since;
  state.closed_at = closed_before;
  state.until = until;
  return state;
}

// A store whose keys are set, and what is told of them.
class Keys {
 public:
  void set(const std::string& key, HostState state, const ClockPair& now) {
    const auto loaded = load_host(store_, key, now, Duration::max());
    REQUIRE(loaded);
    state.version = loaded->state.version;
    REQUIRE(
        wait_for([&](Completion done) { save_host(store_, key, state, now, std::move(done)); }));
  }
  std::vector<std::string> told() {
    const auto events = store_.events(0, 100);
    REQUIRE(events);
    std::vector<std::string> out;
    for (const StoredEvent& stored : *events) {
      CHECK(told_of(stored.event) == "slow-open");
      out.push_back(stored.event.key);
    }
    return out;
  }
  Store& store() { return store_; }

 private:
  MemoryStore store_;
};

using Told = std::vector<std::string>;

}  // namespace

TEST_CASE("alerts: which events are told") {
  using Kind = EventKind;
  using Mark = EventMark;
  struct Row {
    Kind kind;
    Mark mark;
    const char* told;
  };
  const Row rows[] = {
      {Kind::transition, Mark::begins, "breaker-open"},
      {Kind::transition, Mark::none, ""},
      {Kind::operator_act, Mark::begins, "stop"},
      {Kind::operator_act, Mark::ends, "resume"},
      {Kind::operator_act, Mark::none, ""},
      {Kind::anomaly, Mark::none, "anomaly"},
      {Kind::alert, Mark::lasts, "slow-open"},
      {Kind::alert, Mark::begins, "test"},
      {Kind::alert, Mark::none, ""},
      {Kind::store, Mark::none, "store"},
      {Kind::store, Mark::ends, "store-recovered"},
      {Kind::budget, Mark::none, "budget"},
      {Kind::policy, Mark::none, ""},
      {static_cast<Kind>(200), Mark::begins, ""},
      {Kind::transition, static_cast<Mark>(200), ""},
  };
  for (const Row& row : rows) {
    CAPTURE(static_cast<int>(row.kind));
    CAPTURE(static_cast<int>(row.mark));
    CHECK(told_of({kNow.utc, row.kind, "a", "b", row.mark}) == row.told);
  }
}

TEST_CASE("slow open: told once when it has been shut for long enough") {
  Keys keys;
  SlowOpen slow(keys.store(), 15min);
  keys.set("a.test", shut(kNow.mono, kNow.mono + 1h), kNow);
  slow.look(at(15min - 1s));
  CHECK(keys.told() == Told{});
  slow.look(at(15min));
  slow.look(at(16min));
  CHECK(keys.told() == Told{"a.test"});
  const auto events = keys.store().events(0, 1);
  CHECK((*events)[0].event.text.starts_with(
      "shut for 15 min now: a.test is cooling down after 429 Too Many Requests: 45 min left"));
}

TEST_CASE("slow open: probes that fail do not start the time anew") {
  Keys keys;
  SlowOpen slow(keys.store(), 15min);
  keys.set("a.test", shut(kNow.mono, kNow.mono + 10min), kNow);
  slow.look(at(5s));
  keys.set("a.test", shut(kNow.mono + 10min, kNow.mono + 20min), at(10min));
  slow.look(at(14min));
  CHECK(keys.told() == Told{});
  slow.look(at(15min));
  CHECK(keys.told() == Told{"a.test"});
}

TEST_CASE("slow open: a key that was closed in between is told again") {
  Keys keys;
  SlowOpen slow(keys.store(), 15min);
  keys.set("a.test", shut(kNow.mono, kNow.mono + 1h), kNow);
  slow.look(at(20min));
  HostState closed;
  closed.closed_at = kNow.mono + 21min;
  keys.set("a.test", closed, at(21min));
  slow.look(at(21min));
  keys.set("a.test", shut(kNow.mono + 22min, kNow.mono + 2h, closed.closed_at), at(22min));
  slow.look(at(36min));
  CHECK(keys.told() == Told{"a.test"});
  slow.look(at(37min));
  CHECK(keys.told() == Told{"a.test", "a.test"});
}

TEST_CASE("slow open: nobody is told of a cooldown that is over, or of a short one") {
  Keys keys;
  SlowOpen slow(keys.store(), 15min);
  keys.set("a.test", shut(kNow.mono, kNow.mono + 5min), kNow);
  keys.set("b.test", HostState{}, kNow);
  for (const Duration when : {1min, 5min, 15min, 60min}) slow.look(at(when));
  CHECK(keys.told() == Told{});
}

TEST_CASE("slow open: told once by all processes and over restarts") {
  Keys keys;
  keys.set("a.test", shut(kNow.mono, kNow.mono + 1h), kNow);
  SlowOpen one(keys.store(), 15min), other(keys.store(), 15min);
  one.look(at(15min));
  other.look(at(15min));
  SlowOpen restarted(keys.store(), 15min);
  restarted.look(at(16min));
  CHECK(keys.told() == Told{"a.test"});
}

TEST_CASE("slow open: what was told is forgotten with its key") {
  Keys keys;
  keys.set("a.test", shut(kNow.mono, kNow.mono + 1h), kNow);
  SlowOpen(keys.store(), 15min).look(at(15min));
  const auto notices = [&] { return keys.store().scan(kNoticePrefix, "", 10)->entries.size(); };
  Sweep sweep(keys.store());
  REQUIRE(sweep.step(at(16min), 24h, 100));
  CHECK(notices() == 1);
  REQUIRE(wait_for([&](Completion done) { keys.store().erase("host/a.test", std::move(done)); }));
  REQUIRE(sweep.step(at(17min), 24h, 100));
  CHECK(notices() == 0);
}

TEST_CASE("alert body: Slack's format, with fields of its own") {
  const Alert alert{AlertKind::breaker_open, "a.test", "a.test is shut", kNow.utc, 2};
  const auto body =
      nlohmann::json::parse(alert_body({{alert}, 0}, "host", kNow.utc, BodyFor::chat));
  CHECK(body["text"] == "sluice on host: a.test is shut (2 times)");
  CHECK(body["sluice"]["kind"] == "breaker-open");
  CHECK(body["sluice"]["key"] == "a.test");
  CHECK(body["sluice"]["sentence"] == "a.test is shut");
  CHECK(body["sluice"]["at"] == "2027-01-15T08:00:00Z");
  CHECK(body["sluice"]["host"] == "host");
  CHECK(body["sluice"]["count"] == 2);
  CHECK_FALSE(body["sluice"].contains("alerts"));
}

TEST_CASE("alert body: several") {
  const Alert one{AlertKind::breaker_open, "a.test", "a.test is shut", kNow.utc, 2};
  const Alert two{AlertKind::anomaly, "b.test", "b.test is odd", kNow.utc, 1};
  const auto body =
      nlohmann::json::parse(alert_body({{one, two}, 5}, "host", kNow.utc, BodyFor::chat));
  CHECK(body["sluice"]["kind"] == "several");
  CHECK(body["sluice"]["count"] == 8);
  CHECK(body["sluice"]["more"] == 5);
  REQUIRE(body["sluice"]["alerts"].size() == 2);
  CHECK(body["sluice"]["alerts"][1]["sentence"] == "b.test is odd");
}

TEST_CASE("alert body: hostile words wake nobody and break nothing") {
  const std::string evil = "<!channel> @everyone & \"}\\ \xff\n\x1b[31m";
  const Alert alert{AlertKind::anomaly, evil, evil, kNow.utc, 1};
  const auto chat =
      nlohmann::json::parse(alert_body({{alert}, 0}, "host", kNow.utc, BodyFor::chat));
  const auto text = chat["text"].get<std::string>();
  CHECK(text.find("<!channel>") == std::string::npos);
  CHECK(text.find("&lt;!channel&gt;") != std::string::npos);
  CHECK(text.find("@everyone") == std::string::npos);
  CHECK(text.find("&amp;") != std::string::npos);
  const auto program =
      nlohmann::json::parse(alert_body({{alert}, 0}, "host", kNow.utc, BodyFor::program));
  CHECK(program["text"].get<std::string>().find("<!channel> @everyone & \"}\\") !=
        std::string::npos);
}

TEST_CASE("webhook: https, or http to this machine") {
  for (const char* good :
       {"", "https://hooks.slack.com/services/T/B/x", "https://127.0.0.1:8443/",
        "http://127.0.0.1:8065/hooks/x", "http://localhost/", "http://[::1]:1/"}) {
    CAPTURE(good);
    CHECK(webhook_problem(good) == "");
  }
  for (const char* bad : {"hooks.slack.com/services/T", "http://hooks.slack.com/", "ftp://a.test/",
                          "http://10.0.0.1/", "http://localhost.evil.test/", "https://",
                          "file:///etc/passwd", "http://127.0.0.1.evil.test/", "https://a b/"}) {
    CAPTURE(bad);
    CHECK(webhook_problem(bad) != "");
    CHECK(webhook_problem(bad).find("services") == std::string::npos);
  }
}

TEST_CASE("webhook: its secret is not shown") {
  CHECK(webhook_shown("https://hooks.slack.com/services/T0/B0/secret?x=secret") ==
        "https://hooks.slack.com/...");
  CHECK(webhook_shown("https://me:secret@a.test:8443/secret") == "https://a.test:8443/...");
  const char* hidden[] = {"webhook = \"https://a.test/SECRET\"", "webhook = \"SECRET\"",
                          "webhok = \"https://a.test/SECRET\"", "webhook = https://a.test/SECRET",
                          "SLUICE_ALERTS_WEBHOOK=http://SECRET:SECRET@a/"};
  for (const std::string line : hidden) {
    CHECK(without_webhook(line).find("SECRET") == std::string::npos);
    CHECK(without_webhook(line).size() == line.size());
  }
  CHECK(without_webhook("webhook = \"https://a\"") == "webhook = \"*********\"");
  CHECK(without_webhook("listen = \"127.0.0.1:1\"") == "listen = \"127.0.0.1:1\"");
}
