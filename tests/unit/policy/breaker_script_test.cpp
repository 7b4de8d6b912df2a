// The breaker as stories that read aloud, from the answer's head to the sentence people see.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "policy/breaker.h"
#include "policy/classify.h"
#include "policy/sentence.h"

using namespace sluice;

namespace {

constexpr auto forward = Decision::Act::forward, probing = Decision::Act::probe,
               held = Decision::Act::hold, reject = Decision::Act::refuse;

// One key and a clock. Requests are numbered from 1 in the order they were sent.
class Script {
 public:
  explicit Script(Rules rules)
      : rules_(std::move(rules)),
        classifier_(*Classifier::make(rules_.classify, builtin_body_markers())) {}

  Script& at(Duration time) {
    CHECK(start + time >= now_);
    now_ = start + time;
    return *this;
  }
  Script& request() {
    auto step = decide(rules_, state_, now_, {.arrived = now_});
    state_ = std::move(step.next);
    decision_ = step.decision;
    if (decision_.act == forward || decision_.act == probing) sent_.push_back(decision_.ticket);
    return *this;
  }
  Script& requests(int count) {
    for (int i = 0; i < count; ++i) request().expect(forward);
    return *this;
  }
  // Answers the latest request, or the one with that number.
  Script& response(std::uint16_t status, std::string_view field = "", std::size_t number = 0) {
    std::vector<FieldView> fields;
    if (!field.empty()) {
      const auto colon = field.find(": ");
      fields.push_back({field.substr(0, colon), field.substr(colon + 2)});
    }
    return outcome(classifier_.head(status, fields, utc()), number);
  }
  Script& page(std::uint16_t status, std::string_view text) {
    auto scan = classifier_.scan(status, "text/html");
    const auto marker = scan.feed(text);
    const auto head = classifier_.head(status, std::vector<FieldView>{}, utc());
    return outcome(marker ? classifier_.body(head, *marker) : head, 0);
  }
  // What follows a head that was observed already.
  Script& body(std::uint16_t status, std::string_view text) {
    auto scan = classifier_.scan(status, "text/html");
    const auto marker = scan.feed(text);
    REQUIRE(marker);
    auto found =
        classifier_.body(classifier_.head(status, std::vector<FieldView>{}, utc()), *marker);
    found.amends = true;
    return outcome(found, 0);
  }
  Script& fails(OutcomeKind kind) { return outcome({.kind = kind}, 0); }
  // The process dies: the state is all that is left, and nobody will answer for what was sent.
  Script& restart() {
    sent_.clear();
    return *this;
  }

  Script& expect(Decision::Act act, std::string_view part = "") {
    CHECK(static_cast<int>(decision_.act) == static_cast<int>(act));
    const auto text = sentence("api.test", state_, now_, utc());
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
    return *this;
  }
  Script& expect_open_until(Duration time) {
    CHECK(phase_at(state_, now_) == Phase::open);
    CHECK(state_.until - start == time);
    return *this;
  }
  Script& expect_closed() {
    CHECK(state_.phase == Phase::closed);
    return *this;
  }
  Script& expect_level(std::uint32_t level) {
    CHECK(state_.level == level);
    return *this;
  }

 private:
  static constexpr Instant start{500h};
  UtcTime utc() const { return UtcTime(1773309570s) + (now_ - start); }
  Script& outcome(Outcome outcome, std::size_t number) {
    REQUIRE(number <= sent_.size());
    REQUIRE_FALSE(sent_.empty());
    outcome.ticket = number == 0 ? sent_.back() : sent_[number - 1];
    state_ = observe(rules_, std::move(state_), now_, outcome, 0.0);
    return *this;
  }

  Rules rules_;
  Classifier classifier_;
  HostState state_;
  Instant now_ = start;
  Decision decision_;
  std::vector<Ticket> sent_;
};

}  // namespace

// A line is a moment.
// clang-format off

TEST_CASE("script: Retry-After is kept to, then one probe asks") {
  Script(Rules{})
      .at(0s).request().expect(forward)
      .at(0s).response(429, "Retry-After: 30").expect_open_until(30s)
      .restart()
      .at(14s).request().expect(reject, "16 s left, until 10:00:00 UTC")
      .at(29s).request().expect(held, "1 s left")
      .at(30s).request().expect(probing, "is being probed after 429 Too Many Requests")
      .at(30s).request().expect(held)
      .at(31s).response(200).expect_closed()
      .at(31s).request().expect(forward, "lets requests through");
}

TEST_CASE("script: a burst of 429s in flight climbs the ladder once") {
  Script script{Rules{}};
  script.requests(195);
  for (std::size_t i = 1; i <= 195; ++i) script.response(429, "", i);
  script.expect_level(1).expect_open_until(1min);
}

TEST_CASE("script: a burst of 429s that name a time is one trip, and the latest time holds") {
  Script script{Rules{}};
  script.requests(4)
      .at(0s).response(429, "Retry-After: 10", 1)
      .at(1s).response(429, "Retry-After: 10", 2)
      .at(2s).response(429, "Retry-After: 1", 3).expect_open_until(11s).expect_level(1)
      .at(11s).request().expect(probing)
      .at(12s).response(200).expect_closed().expect_level(1);
}

TEST_CASE("script: a late 200 from before the trip does not let traffic back") {
  Script(Rules{})
      .requests(2).response(429, "Retry-After: 60", 1)
      .at(5s).response(200, "", 2).expect_open_until(60s)
      .at(6s).request().expect(reject, "54 s left")
      .at(60s).request().expect(probing)
      .at(60s).request().expect(held);
}

TEST_CASE("script: a probe lost to a local error frees its slot at once") {
  Script(Rules{})
      .request().response(429, "Retry-After: 10")
      .at(10s).request().expect(probing)
      .at(11s).fails(OutcomeKind::local)
      .at(11s).request().expect(probing)
      .at(12s).response(200).expect_closed();
}

TEST_CASE("script: a probe lost to a crash frees its slot with its lease") {
  Script(Rules{})
      .request().response(429, "Retry-After: 10")
      .at(10s).request().expect(probing)
      .restart()
      .at(20s).request().expect(held)
      .at(40s).request().expect(held)
      .at(41s).request().expect(probing);
}

TEST_CASE("script: a silent probe is a failure, one level up") {
  Script(Rules{})
      .request().response(429, "Retry-After: 10")
      .at(10s).request().expect(probing)
      .at(40s).fails(OutcomeKind::network).expect_level(2).expect_open_until(40s + 5min);
}

TEST_CASE("script: our own DNS failures do not convict the host") {
  Script script{Rules{}};
  for (int i = 0; i < 100; ++i) script.request().expect(forward).fails(OutcomeKind::local);
  script.expect_closed().request().expect(forward);
}

TEST_CASE("script: floods of neutral answers leave it closed") {
  Script script{Rules{}};
  for (int i = 0; i < 300; ++i) {
    for (std::uint16_t status : {404, 401, 403}) script.request().expect(forward).response(status);
  }
  script.expect_closed();
}

TEST_CASE("script: three 429s without a time, and a five-minute policy") {
  Rules rules;
  rules.breaker.consecutive = 3;
  rules.breaker.cooldown = {5min};
  Script(rules)
      .request().response(429).request().response(429).expect_closed().request().response(429)
      .expect_open_until(5min)
      .at(1s).request()
      .expect(reject, "failures in a row, the last of them 429 Too Many Requests: 4 min 59 s left");
}

TEST_CASE("script: an anti-bot page in a 200 shuts it for hours") {
  Script(Rules{})
      .request().page(200, "Sign in to confirm you're not a bot").expect_open_until(1h)
      .at(1min).request().expect(reject, "an anti-bot answer with status 200 OK: 59 min left")
      .at(1h).request().expect(probing)
      .at(1h).page(200, "Sign in to confirm you're not a bot").expect_open_until(7h)
      .at(7h).request().expect(probing)
      .at(7h).page(200, "all is well").expect_closed();
}

TEST_CASE("script: an error at the head whose body is a block is a block") {
  Script(Rules{})
      .request().response(429, "Retry-After: 5").expect_open_until(5s)
      .body(429, "<div id=px-captcha>").expect_open_until(1h);
  Script(Rules{})
      .request().response(503).expect_closed()
      .body(503, "<title>Just a moment...</title>").expect_open_until(1h)
      .at(1min).request().expect(reject, "an anti-bot answer with status 503");
}

TEST_CASE("script: blocks in the bodies of a burst of 429s climb once") {
  Script script{Rules{}};
  script.requests(20);
  for (std::size_t i = 1; i <= 20; ++i) script.response(429, "", i);
  for (int i = 0; i < 20; ++i) script.body(429, "<div id=px-captcha>");
  script.expect_open_until(1h);
}

TEST_CASE("script: a cooldown that ended while nobody ran lets one probe through") {
  Script(Rules{})
      .request().response(503, "Retry-After: 60")
      .restart()
      .at(72h).request().expect(probing)
      .at(72h).request().expect(held);
}

// clang-format on
