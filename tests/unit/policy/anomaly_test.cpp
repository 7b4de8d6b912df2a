// What is unusual about one key, as scripts in simulated time, and what is said of it.
#include "policy/anomaly.h"

#include <doctest/doctest.h>

#include "policy/anomaly_sentence.h"
#include "policy/url_sketch.h"

using namespace sluice;

namespace {

using What = AnomalyNews::What;

// One key and its clients. Every method says what was told because of it.
class Script {
 public:
  explicit Script(AnomalyRules rules = {}) : rules_(std::move(rules)) {}

  Script& at(Duration since) {
    for (; ticked_ + 1s <= since; ticked_ += 1s) tick(ticked_ + 1s);
    now_ = since;
    return *this;
  }
  Script& request(std::uint64_t url, bool refused = false) {
    AnomalyAsk ask = moment();
    ask.url = url;
    ask.refused = refused;
    if (url != 0 && (!refused || key.follows(url))) ask.times = urls_.add(url << 32 | url, ask.now);
    ask.what = "GET /x";
    key.asked(rules_, usual, ask, news);
    return *this;
  }
  Script& answer(bool error) {
    key.answered(rules_, usual, moment(), error, news);
    return *this;
  }
  // Different URLs, evenly, for a time.
  Script& traffic(double per_minute, Duration length, bool refused = false) {
    const Duration end = now_ + length;
    const auto gap = Duration(static_cast<Duration::rep>(60e6 / per_minute));
    for (Duration when = now_; when < end; when += gap) at(when).request(++last_url_, refused);
    return at(end);
  }
  // "burst began alert; burst escalated throttle"; then forgets it.
  std::string told() {
    std::string out;
    for (const AnomalyNews& one : news) {
      constexpr const char* words[] = {"began", "escalated", "lasts", "pardoned", "ended"};
      out += (out.empty() ? "" : "; ") + std::string(anomaly_word(one.anomaly.kind)) + " " +
             words[static_cast<int>(one.what)] +
             (one.what == What::ended ? "" : " " + std::string(action_word(one.anomaly.action)));
    }
    news.clear();
    return out;
  }

  KeyAnomalies key;
  UsualRate usual;
  std::vector<AnomalyNews> news;
  bool working = true, watched_only = false;

 private:
  AnomalyAsk moment() const {
    return {.now = Instant{1000h} + now_,
            .utc = UtcTime{500'000h} + now_,
            .working_hours = working,
            .watched_only = watched_only};
  }
  void tick(Duration when) {
    now_ = when;
    key.tick(rules_, usual, moment(), news);
  }

  AnomalyRules rules_;
  UrlSketch urls_{4096, rules_.thrash.within};
  Duration now_{}, ticked_{};
  std::uint64_t last_url_ = 1000;
};

AnomalyRules acting(AnomalyAction action) {
  AnomalyRules rules;
  rules.action = action;
  return rules;
}

AnomalyRules without_learning() {
  AnomalyRules rules;
  rules.burst.learn = 0s;
  return rules;
}

}  // namespace

TEST_CASE("anomaly: one URL more than three times in five minutes") {
  struct Row {
    const char* name;
    std::vector<Duration> asked;
    bool told;
  };
  const Row rows[] = {
      {"three times", {0s, 1s, 2s}, false},
      {"four times", {0s, 1s, 2s, 3s}, true},
      {"four times within four minutes", {0s, 80s, 160s, 240s}, true},
      {"every two minutes, for long", {0s, 2min, 4min, 6min, 8min, 10min, 12min, 14min}, false},
      {"four times, but not within five minutes", {0s, 1s, 2s, 302s}, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Script script;
    for (const Duration at : row.asked) script.at(at).request(7);
    CHECK(script.told() == (row.told ? "thrash began alert" : ""));
  }
}

TEST_CASE("anomaly: different URLs are no thrash, however many") {
  Script script;
  script.traffic(600, 30min);
  CHECK(script.told() == "");
}

TEST_CASE("anomaly: a refused request begins nothing, and lets a loop go on") {
  Script refused;
  for (int i = 0; i < 50; ++i) refused.at(i * 1s).request(7, true);
  refused.at(60s).request(7);
  CHECK(refused.told() == "");

  Script script(acting(AnomalyAction::open));
  for (int i = 0; i < 4; ++i) script.request(7);
  CHECK(script.told() == "thrash began open");
  for (int i = 1; i <= 10; ++i) script.at(i * 1min).request(7, true);
  CHECK(script.told() == "");
  script.at(14min + 59s).request(8, true);  // somebody else's
  CHECK(script.told() == "");
  script.at(15min);
  CHECK(script.told() == "thrash ended");
}

TEST_CASE("anomaly: what is slowed and lasts is shut after five minutes, and what stops ends") {
  Script script(acting(AnomalyAction::throttle));
  const auto loop_until = [&](Duration from, Duration to) {
    for (Duration when = from; when <= to; when += 10s) script.at(when).request(7);
  };
  loop_until(0s, 4min);
  CHECK(script.told() == "thrash began throttle");
  loop_until(4min, 5min + 40s);
  CHECK(script.told() == "thrash escalated open");
  loop_until(6min, 12min);
  CHECK(script.told() == "");
  loop_until(12min, 40min);
  CHECK(script.told() == "");
  script.at(44min + 59s);
  CHECK(script.told() == "");
  script.at(45min);
  CHECK(script.told() == "thrash ended");
  CHECK(script.key.going_on().empty());
}

TEST_CASE("anomaly: one that was short never escalates; one that is only told of is told again") {
  Script script;
  for (int i = 0; i < 4; ++i) script.request(7);
  script.at(1h);
  CHECK(script.told() == "thrash began alert; thrash ended");

  AnomalyRules calm = acting(AnomalyAction::throttle);
  calm.escalate_after = 0s;
  Script calm_script(calm), told;
  Script watched;
  watched.watched_only = true;
  for (Duration when{}; when < 1h; when += 10s) {
    calm_script.at(when).request(7);
    told.at(when).request(7);
    watched.at(when).request(7);
  }
  CHECK(calm_script.told() == "thrash began throttle");
  CHECK(told.told() == "thrash began alert; thrash lasts alert");
  CHECK(watched.told() == "thrash began alert; thrash lasts alert");
}

TEST_CASE("anomaly: a policy that only observes is told of, and nothing is done") {
  Script script(acting(AnomalyAction::open));
  script.watched_only = true;
  for (int i = 0; i < 4; ++i) script.request(7);
  CHECK(script.told() == "thrash began alert");
  CHECK(script.key.spacing() == Duration(0));
}

TEST_CASE("anomaly: what an operator lets go on is watched until it ends, and then begins anew") {
  Script script(acting(AnomalyAction::throttle));
  const auto loop_until = [&](Duration from, Duration to) {
    for (Duration when = from; when <= to; when += 10s) script.at(when).request(7);
  };
  loop_until(0s, 1min);
  CHECK(script.told() == "thrash began throttle");
  script.key.pardon(Instant{1000h} + 1min, script.news);
  CHECK(script.told() == "thrash pardoned alert");
  CHECK(script.key.spacing() == Duration(0));
  loop_until(1min, 1h);
  CHECK(script.told() == "");
  script.at(70min);
  CHECK(script.told() == "thrash ended");
  loop_until(80min, 81min);
  CHECK(script.told() == "thrash began throttle");
}

TEST_CASE("anomaly: each kind may have an action of its own, or none") {
  AnomalyRules rules = acting(AnomalyAction::open);
  rules.thrash.action = AnomalyAction::throttle;
  Script script(rules);
  for (int i = 0; i < 4; ++i) script.request(7);
  CHECK(script.told() == "thrash began throttle");

  rules.thrash.enabled = rules.error_spike.enabled = false;
  Script silent(rules);
  for (int i = 0; i < 20; ++i) silent.request(7).answer(true);
  CHECK(silent.told() == "");
}

TEST_CASE("anomaly: bursts against the key's own habit") {
  struct Row {
    const char* name;
    double usual, then;  // per minute
    bool told;
  };
  const Row rows[] = {
      {"ten a minute are never a burst", 1, 10, false},
      {"twelve a minute after one", 1, 14, true},
      {"four times as many", 30, 120, false},
      {"ten times as many", 30, 300, true},
      {"a steady crawler", 60, 60, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Script script;
    script.traffic(row.usual, 72h);
    CHECK(script.told() == "");
    script.traffic(row.then, 3min);
    CHECK(script.told() == (row.told ? "burst began alert" : ""));
  }
}

TEST_CASE("anomaly: a fresh key has no habits yet") {
  Script script;
  script.traffic(120, 2h);
  CHECK(script.told() == "");
  Script told_to_judge(without_learning());
  told_to_judge.traffic(120, 1min);
  CHECK(told_to_judge.told() == "burst began alert");
}

TEST_CASE("anomaly: a burst goes on against the habit it began with, and becomes one in days") {
  Script script;
  const auto day = [&](double at_night) {
    script.traffic(1, 23h);
    script.traffic(at_night, 1h);
  };
  day(1);
  day(1);
  day(1);
  CHECK(script.told() == "");
  int nights = 0;
  for (int night = 0; night < 6; ++night) {
    day(100);
    const std::string told = script.told();
    if (told.find("burst began") == std::string::npos) break;
    ++nights;
  }
  CHECK(nights >= 1);
  CHECK(nights <= 3);
}

TEST_CASE("anomaly: more than half of the last ten answers") {
  struct Row {
    const char* name;
    std::string answers;  // 'x' is an error
    Duration apart;
    bool told;
  };
  const Row rows[] = {
      {"all good", "....................", 1s, false},
      {"half of them", "..x.x.x.x.x.", 1s, false},
      {"six of ten", ".x.xx.x.xx", 1s, true},
      {"too few yet", "xxxxxxxxx", 1s, false},
      {"all of ten", "xxxxxxxxxx", 1s, true},
      {"long ago they were good", ".................xxxxxx", 1s, true},
      {"with long pauses", "xxxxxxxxxxxxxx", 11min, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Script script;
    Duration when{};
    for (const char c : row.answers) script.at(when += row.apart).answer(c == 'x');
    CHECK(script.told() == (row.told ? "error-spike began alert" : ""));
  }
}

TEST_CASE("anomaly: use outside of the hours, once a night and once more when it lasts") {
  Script script;
  script.traffic(1, 1h);
  CHECK(script.told() == "");
  script.working = false;
  script.traffic(1.0 / 30, 4h);  // now and then is one run
  CHECK(script.told() == "off-hours began alert; off-hours lasts alert");
  script.working = true;
  script.at(5h + 1s);
  CHECK(script.told() == "off-hours ended");
}

TEST_CASE("anomaly: half the pace, and never less than one in twelve seconds") {
  struct Row {
    double per_minute;
    Duration least, most;
  };
  const Row rows[] = {{120, 900ms, 1200ms}, {600, 180ms, 240ms}, {6, 11s, 12s}};
  for (const Row& row : rows) {
    CAPTURE(row.per_minute);
    Script script(acting(AnomalyAction::throttle));
    script.traffic(row.per_minute, 2min);
    CHECK(script.key.spacing() == Duration(0));
    const auto gap = Duration(static_cast<Duration::rep>(60e6 / row.per_minute));
    Duration when = 2min;
    while (script.told().find("throttle") == std::string::npos) {
      REQUIRE(when < 1h);
      script.at(when += gap).request(7);
    }
    CHECK(script.key.spacing() >= row.least);
    CHECK(script.key.spacing() <= row.most);
    script.key.went(Instant{5000h});
    CHECK(script.key.next_at() == Instant{5000h} + script.key.spacing());
    script.at(when + 10min);
    CHECK(script.told() == "thrash ended");
    CHECK(script.key.spacing() == Duration(0));
  }
}

TEST_CASE("anomaly: what is said") {
  AnomalyRules rules;
  rules.off_hours.hours = {{{8h, 20h}}, 0x1f, "Europe/Berlin"};
  AnomalyNews news{What::began, Instant{1000s}, {.since = Instant{1000s}}};
  const auto said = [&](AnomalyKind kind, AnomalyAction action, std::uint32_t number) {
    news.anomaly.kind = kind;
    news.anomaly.action = action;
    news.anomaly.number = number;
    return anomaly_sentence("a.test", rules, news);
  };
  news.anomaly.usual = 3;
  news.anomaly.what = "GET /x";
  CHECK(said(AnomalyKind::burst, AnomalyAction::alert, 84) ==
        "a.test gets a burst: 84 requests in a minute, where at most 3 are usual; find what has "
        "begun to send, or shut it: sluice open a.test --for 10m");
  CHECK(said(AnomalyKind::thrash, AnomalyAction::throttle, 4) ==
        "a.test is asked for one URL over and over, 4 times in 5 min: GET /x; look for a loop in "
        "its client; it gets half its pace while this lasts");
  CHECK(said(AnomalyKind::error_spike, AnomalyAction::open, 6) ==
        "a.test fails: 6 of the last 10 answers were errors; look at what it answers; it is shut "
        "for 15 min, longer if this goes on; sluice close a.test lifts that");
  CHECK(said(AnomalyKind::off_hours, AnomalyAction::alert, 1) ==
        "a.test is used outside of 08:00-20:00 Europe/Berlin on mon, tue, wed, thu, fri; see "
        "whether somebody watches this run, or shut it: sluice open a.test --for 10m");
  news.what = What::lasts;
  news.at = Instant{1310s};
  CHECK(said(AnomalyKind::burst, AnomalyAction::alert, 84) ==
        "a.test gets a burst: 84 requests in a minute, where at most 3 are usual; this has lasted "
        "for 5 min 10 s and goes on: find what has begun to send, or shut it: sluice open a.test "
        "--for 10m");
  news.what = What::pardoned;
  CHECK(said(AnomalyKind::error_spike, AnomalyAction::alert, 6) ==
        "a.test fails: 6 of the last 10 answers were errors; an operator has closed it, so this is "
        "only watched");
  news.what = What::ended;
  news.at = Instant{1720s};
  news.anomaly.requests = 2165;
  CHECK(said(AnomalyKind::thrash, AnomalyAction::open, 99) ==
        "a.test: thrash is over after 12 min and 2165 requests that showed it");
  CHECK(open_reason(rules, news.anomaly) ==
        "thrash: it is asked for one URL over and over, 99 times in 5 min: GET /x");
}

TEST_CASE("anomaly: the name of a request tells no secret and is short") {
  CHECK(request_name("GET", "/v1/events") == "GET /v1/events");
  CHECK(request_name("GET", "/v1/events?key=s3cret") == "GET /v1/events?…");
  CHECK(request_name("GET", "/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/getMe") ==
        "GET /…/getMe");
  CHECK(request_name("GET", "") == "GET ");
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "/a" + std::to_string(i);
  CHECK(request_name("GET", deep).size() < 150);
}
