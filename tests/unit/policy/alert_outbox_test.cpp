// What is told when, as scripts: repeats, floods, receivers that fail.
#include "policy/alert_outbox.h"

#include <doctest/doctest.h>

using namespace sluice;

namespace {

constexpr Instant t0{1000h};
constexpr UtcTime noon{12h};
using Kind = AlertKind;

class Script {
 public:
  explicit Script(AlertRules rules = {}) : rules_(rules) {}
  Script& at(Duration when) {
    now_ = t0 + when;
    return *this;
  }
  Script& happens(Kind kind, const std::string& key, const std::string& sentence = "it is shut") {
    take(rules_, box_, {kind, key, sentence, noon, 1}, now_);
    return *this;
  }
  // "a b x3 +2": the keys of what is due, how often, and how many more; "": nothing.
  Script& due_now(const std::string& expected) {
    CAPTURE((now_ - t0) / 1s);
    CHECK(shown(due(rules_, box_, now_)) == expected);
    return *this;
  }
  Script& taken(const std::string& expected) {
    CAPTURE((now_ - t0) / 1s);
    const auto message = due(rules_, box_, now_);
    REQUIRE(message);
    CHECK(shown(message) == expected);
    delivered(rules_, box_, *message, now_);
    return *this;
  }
  Script& refused(Duration asked = 0s, double jitter = 0) {
    REQUIRE(due(rules_, box_, now_));
    put_off(box_, now_, asked, jitter);
    return *this;
  }
  Script& given_up(const std::string& expected) {
    CAPTURE((now_ - t0) / 1s);
    CHECK(shown(give_up(rules_, box_, now_)) == expected);
    return *this;
  }
  Outbox& box() { return box_; }
  Instant now() const { return now_; }
  const AlertRules& rules() const { return rules_; }

 private:
  static std::string shown(const std::optional<AlertMessage>& message) {
    if (!message) return "";
    std::string out;
    for (const Alert& alert : message->alerts) {
      out += (out.empty() ? "" : " ") + alert.key;
      if (alert.count > 1) out += " x" + std::to_string(alert.count);
    }
    if (message->more > 0) out += (out.empty() ? "+" : " +") + std::to_string(message->more);
    return out;
  }

  const AlertRules rules_;
  Outbox box_;
  Instant now_ = t0;
};

}  // namespace

TEST_CASE("alerts: told at once, and not again") {
  Script().due_now("").happens(Kind::breaker_open, "a").taken("a").due_now("").at(1h).due_now("");
}

TEST_CASE("alerts: the same within a while is told once more, with a count") {
  Script()
      .happens(Kind::breaker_open, "a")
      .taken("a")
      .at(10s)
      .happens(Kind::breaker_open, "a")
      .due_now("")
      .at(200s)
      .happens(Kind::breaker_open, "a")
      .at(299s)
      .due_now("")
      .at(300s)
      .taken("a x2")
      .at(599s)
      .happens(Kind::breaker_open, "a")
      .due_now("")
      .at(600s)
      .taken("a");
}

TEST_CASE("alerts: another key or another kind is not the same") {
  Script()
      .happens(Kind::breaker_open, "a")
      .taken("a")
      .happens(Kind::breaker_open, "b")
      .taken("b")
      .happens(Kind::slow_open, "a")
      .taken("a")
      .due_now("");
}

TEST_CASE("alerts: what is the same is told by words, not numbers, where words matter") {
  Script()
      .happens(Kind::budget, "", "half of the daily budget is spent: 5.01 of 10 USD")
      .taken("")
      .happens(Kind::budget, "", "the daily budget is used up: 8 of 10 USD")
      .taken("")
      .happens(Kind::budget, "", "the daily budget is used up: 9 of 10 USD")
      .due_now("");
  Script()
      .happens(Kind::breaker_open, "a", "after 429")
      .taken("a")
      .happens(Kind::breaker_open, "a", "after a network failure")
      .due_now("");
}

TEST_CASE("alerts: a flood is told by a few messages, the last of which says the rest") {
  Script script({.per_hour = 60, .burst = 3});
  for (const char* key : {"a", "b", "c", "d", "e"}) script.happens(Kind::breaker_open, key);
  script.taken("a").taken("b").taken("c d e").due_now("");
  script.happens(Kind::breaker_open, "f").happens(Kind::breaker_open, "g").at(59s).due_now("");
  script.at(60s).taken("f g").due_now("");
  script.at(1h).happens(Kind::breaker_open, "h").taken("h");
}

TEST_CASE("alerts: by default nothing waits longer than 30 s for the rate limit") {
  Script script;
  for (int i = 0; i < 40; ++i) script.happens(Kind::breaker_open, std::to_string(i));
  while (const auto message = due(script.rules(), script.box(), script.now()))
    delivered(script.rules(), script.box(), *message, script.now());
  script.happens(Kind::breaker_open, "late").due_now("").at(30s).taken("late");
}

TEST_CASE("alerts: what is urgent is not held back by a flood") {
  Script script({.per_hour = 60, .burst = 1});
  script.happens(Kind::breaker_open, "a").taken("a").happens(Kind::breaker_open, "b").due_now("");
  script.happens(Kind::stop, "stop").taken("stop");
  script.happens(Kind::resume, "resume").taken("resume").due_now("");
}

TEST_CASE("alerts: the queue is bounded, and what has no room is counted") {
  Script script({.burst = 2, .most_waiting = 3});
  for (const char* key : {"a", "b", "c", "d", "e"}) script.happens(Kind::breaker_open, key);
  CHECK(script.box().waiting.size() == 3);
  CHECK(waiting_count(script.box()) == 5);
  script.happens(Kind::stop, "stop");
  CHECK(script.box().waiting.size() == 3);
  script.taken("stop").taken("a").taken("b +3").due_now("");
  CHECK(waiting_count(script.box()) == 0);
}

TEST_CASE("alerts: tried again ever later, and no later than 30 s") {
  Script script;
  script.happens(Kind::breaker_open, "a");
  Duration when{};
  for (const Duration wait : {1s, 2s, 4s, 8s, 16s, 20s, 20s}) {
    script.at(when).refused().at(when + wait - 1ms).due_now("").at(when + wait).due_now("a");
    when += wait;
  }
  script.taken("a").happens(Kind::breaker_open, "b").refused().at(when + 1s).due_now("b");
}

TEST_CASE("alerts: jitter only shortens, and the receiver's own word counts") {
  Script().happens(Kind::stop, "a").refused(0s, 1.0).at(499ms).due_now("").at(500ms).due_now("a");
  Script().happens(Kind::stop, "a").refused(60s, 1.0).at(59s).due_now("").at(60s).due_now("a");
  Script().happens(Kind::stop, "a").refused(48h).at(15min - 1s).due_now("").at(15min).due_now("a");
}

TEST_CASE("alerts: what came while it failed is told together with what was there") {
  Script()
      .happens(Kind::breaker_open, "a")
      .refused()
      .happens(Kind::breaker_open, "a")
      .happens(Kind::breaker_open, "b")
      .at(1s)
      .taken("a x2")
      .taken("b")
      .due_now("");
}

TEST_CASE("alerts: given up after a while, and not before") {
  Script script({.give_up = 1h, .most_waiting = 1});
  script.happens(Kind::breaker_open, "a").at(1min).happens(Kind::breaker_open, "b");
  script.at(1h - 1s).given_up("").at(1h).given_up("a").given_up("");
  script.at(1h + 1min).given_up("+1").given_up("");
  CHECK(waiting_count(script.box()) == 0);
}

TEST_CASE("alerts: what the receiver will never take does not block the next") {
  Script script;
  script.happens(Kind::breaker_open, "a").happens(Kind::breaker_open, "b").refused();
  const AlertMessage first{{script.box().waiting.front().alert}, 0};
  discard(script.rules(), script.box(), first, script.now());
  script.taken("b").due_now("");
}

TEST_CASE("alerts: hostile lengths are cut") {
  Outbox box;
  const std::string key(5000, 'k'), sentence(50000, 's');
  take({}, box, {Kind::anomaly, key, sentence, noon, 1}, t0);
  CHECK(box.waiting.front().alert.key.size() == Alert::max_key);
  CHECK(box.waiting.front().alert.sentence.size() == Alert::max_sentence);
}

TEST_CASE("alerts: the text says where, what, how often, and when if that is long ago") {
  const Alert one{Kind::breaker_open, "a", "a is shut", noon, 1};
  CHECK(alert_text({{one}, 0}, "host", noon) == "sluice on host: a is shut");
  CHECK(alert_text({{one}, 0}, "host", noon + 2min) == "sluice on host: a is shut [12:00:00 UTC]");
  Alert many = one;
  many.count = 3;
  CHECK(alert_text({{many}, 0}, "host", noon) == "sluice on host: a is shut (3 times)");
  CHECK(alert_text({{one, many}, 4}, "host", noon) ==
        "sluice on host: 6 more alerts\n- a is shut\n- a is shut (3 times)\n- and 4 more");
  const std::vector<Alert> flood(50, {Kind::anomaly, "a", std::string(600, 'x'), noon, 1});
  const std::string text = alert_text({flood, 7}, "host", noon);
  CHECK(text.size() <= 1900);
  CHECK(text.ends_with("- and 54 more"));
}
