// The pacer by itself: what one answer changes, what goes when. tests/unit/policy/lab has the
// limits it is made for.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "policy/pacer.h"

using namespace sluice;

namespace {

using Kind = OutcomeKind;
constexpr Instant start{100h};

// One key and a clock.
class Key {
 public:
  explicit Key(Rules rules = {}) : rules_(std::move(rules)) {}

  Key& at(Duration time) {
    now = start + time;
    return *this;
  }
  // Sends as many as may go now.
  unsigned go(unsigned most = 1000, bool tunnel = false) {
    unsigned sent = 0;
    for (; sent < most; ++sent) {
      next = pace_opens(rules_, state, now);
      if (next > now) break;
      tickets.push_back(pace_take(rules_, state, now, jitter, tunnel));
    }
    return sent;
  }
  // Answers the oldest that is on its way.
  Key& answer(Kind kind, std::uint16_t status = 200, std::optional<Duration> wait = {}) {
    return answer(Outcome{.kind = kind, .status = status, .wait = wait});
  }
  Key& answer(const Outcome& outcome) {
    REQUIRE_FALSE(tickets.empty());
    pace_observe(rules_, state, now, tickets.front(), outcome);
    return lose();
  }
  // The oldest is over without an answer.
  Key& lose() {
    pace_done(state, tickets.front());
    tickets.erase(tickets.begin());
    return *this;
  }
  std::string sentence() const { return pace_sentence(rules_, state, now); }

  PaceState state;
  Instant now = start;
  Instant next{};  // when it was told to ask again
  double jitter = 0;
  std::vector<PaceTicket> tickets;

 private:
  Rules rules_;
};

Rules with(PaceRules pace) {
  Rules rules;
  rules.pace = pace;
  return rules;
}

}  // namespace

TEST_CASE("pacer: an unknown host is asked alone, and then more at once with each success") {
  Key key;
  CHECK(key.go() == 1);
  CHECK(key.next == Instant::max());  // only an answer can tell more
  key.at(20ms).answer(Kind::success);
  unsigned most = 0;
  for (Duration t = 20ms; t < Duration(3s); t += 1ms) {
    key.at(t).go(1);
    while (!key.tickets.empty() && key.now - key.tickets.front().sent >= 20ms) {
      key.answer(Kind::neutral, 404);  // not what was asked for, but admitted
    }
    most = std::max(most, key.state.flight.in_flight);
  }
  CHECK(most >= 19);
  CHECK(key.state.learned.known);
  CHECK(key.sentence() == "no limit met");
  // A known one loses nothing.
  Key known;
  known.state = pace_restored({}, key.state.learned, start);
  CHECK(known.go(100) == 100);
}

TEST_CASE("pacer: an answer that does not come keeps the others waiting for a second only") {
  Key key;
  CHECK(key.go() == 1);
  CHECK(pace_gives_up(key.state, key.now) == start + 1s);
  CHECK(key.at(999ms).go() == 0);
  CHECK(key.at(1s).go() == 1);  // the next one is asked alone again
  CHECK(pace_gives_up(key.state, key.now) == start + 2s);
  key.answer(Kind::success).answer(Kind::success);
  CHECK(pace_gives_up(key.state, key.now) == Instant::max());
  // Of a slow host, for longer than its answers take.
  Key slow;
  CHECK(slow.go() == 1);
  slow.state.flight.latency = 2s;
  CHECK(slow.at(7900ms).go() == 0);
  CHECK(slow.at(8s).go() == 1);
  // One long stream tells nothing about the others.
  Key stream;
  CHECK(stream.go() == 1);
  stream.at(1h).answer(Kind::success);
  CHECK(stream.go(1) == 1);
  for (int i = 1; i < 7; ++i) CHECK(stream.at(1h + i * 500ms).go(1) == 1);
  CHECK(stream.at(1h + 9s).go(1) == 0);
  CHECK(stream.at(1h + 13s).go(1) == 1);
}

TEST_CASE("pacer: what was given up is not counted again, whenever it is answered") {
  std::mt19937_64 random(7);
  Key key;
  for (int i = 0; i < 2000; ++i) {
    key.now += Duration(random() % 1'500'000);
    key.go(static_cast<unsigned>(random() % 3));
    while (!key.tickets.empty() && random() % 2 == 0) {
      std::swap(key.tickets[0], key.tickets[random() % key.tickets.size()]);
      random() % 3 == 0 ? key.lose() : key.answer(Kind::neutral, 404);
    }
  }
  while (!key.tickets.empty()) key.lose();
  CHECK(key.state.flight.undecided.older + key.state.flight.undecided.newer == 0);
}

TEST_CASE("pacer: a probe that is not answered is followed by another") {
  Key key;
  CHECK(key.go() == 1);
  key.at(20ms).answer(Kind::rate_limited, 429);
  CHECK(key.at(1h).go() == 1);
  CHECK(key.next == Instant::max());
  CHECK(pace_gives_up(key.state, key.now) == start + 1h + 1s);
  CHECK(key.at(1h + 1s).go() == 1);
  std::swap(key.tickets[0], key.tickets[1]);
  key.answer(Kind::success);
  CHECK_FALSE(key.state.flight.incident.open);
  CHECK(key.state.flight.in_flight == 1);
}

TEST_CASE("pacer: tunnels and long bodies that were admitted hold no places of the gentle start") {
  Key key;
  std::vector<PaceTicket> open;
  for (int i = 0; i < 40; ++i) {
    REQUIRE(key.at(i * 100ms).go(1) == 1);
    pace_observe({}, key.state, key.now, key.tickets.front(), {.kind = Kind::success});
    open.push_back(key.tickets.front());
    key.tickets.clear();
  }
  CHECK(key.state.flight.in_flight == 40);
  for (PaceTicket& ticket : open) pace_done(key.state, ticket);
  CHECK(key.state.flight.in_flight == 0);
  // But a place is a place where the policy limits them.
  Key limited(with({.max_concurrency = 2}));
  CHECK(limited.go() == 1);
  pace_observe({}, limited.state, limited.now, limited.tickets.front(), {.kind = Kind::success});
  CHECK(limited.go() == 1);
  CHECK(limited.at(1min).go() == 0);
}

TEST_CASE("pacer: a success whose body tells otherwise is one request") {
  Key key;
  CHECK(key.go() == 1);
  PaceTicket& ticket = key.tickets.front();
  pace_observe({}, key.state, key.now, ticket, {.kind = Kind::success});
  pace_observe({}, key.state, key.now, ticket, {.kind = Kind::anti_bot});
  CHECK(key.state.flight.incident.ban);
  key.lose();
  CHECK(key.state.flight.undecided.newer == 0);
}

TEST_CASE("pacer: min_delay, jitter and max_concurrency") {
  Key key(with({.min_delay = 1s, .jitter = 500ms, .max_concurrency = 2, .adapt = Adapt::off}));
  key.jitter = 0.5;
  CHECK(key.go() == 1);
  CHECK(key.next == start + 1250ms);
  CHECK(key.at(1249ms).go() == 0);
  CHECK(key.at(1250ms).go() == 1);
  CHECK(key.at(10s).go() == 0);
  CHECK(key.next == Instant::max());
  key.lose();  // the client left: its place is free
  CHECK(key.go() == 1);
}

TEST_CASE("pacer: linear") {
  const PaceRules pace{.min_delay = 1s,
                       .max_concurrency = 4,
                       .adapt = Adapt::linear,
                       .step = 2s,
                       .cap = 14s,
                       .recover_after = 3};
  struct Row {
    const char* name;
    std::vector<Kind> answers;
    Duration delay, floor;
  };
  constexpr Kind ok = Kind::success, no = Kind::rate_limited;
  const Row rows[] = {
      {"a step for each refusal", {no, no}, 4s, 0s},
      {"up to the cap, the policy's own delay included", {no, no, no, no, no, no, no, no}, 13s, 0s},
      {"one less after recover_after successes", {no, no, ok, ok, ok}, 2s, 0s},
      {"not before", {no, no, ok, ok}, 4s, 0s},
      {"a refusal right after takes it back and marks the floor", {no, no, ok, ok, ok, no}, 4s, 4s},
      {"not lowered under the floor again",
       {no, no, ok, ok, ok, no, ok, ok, ok, ok, ok, ok},
       4s,
       4s},
      {"server errors and neutral answers are no refusals",
       {no, Kind::server_error, Kind::neutral, ok},
       2s,
       0s},
      {"a refusal long after the step marks no floor", {no, ok, ok, ok, ok, ok, ok, no}, 2s, 0s},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Key key(with(pace));
    Duration t{};
    for (const Kind kind : row.answers) {
      key.at(t += 1min).go(1);
      key.answer(kind);
    }
    CHECK(key.state.learned.delay == row.delay);
    CHECK(key.state.learned.delay_floor == row.floor);
  }
  // For every 5 s one less at once, one at least.
  Key key(with(pace));
  key.state.learned.delay = 11s;
  CHECK(key.at(0s).go(1) == 1);
  CHECK(key.at(12s).go(1) == 1);
  CHECK(key.at(1h).go(1) == 0);
  CHECK(key.sentence() == "a delay of 12 s; next slot after an answer");
}

TEST_CASE("pacer: who waits for a place is told whose they are") {
  struct Row {
    unsigned places, requests, tunnels;
    const char* sentence;
  };
  const Row rows[] = {
      {0, 1, 1, "no limit met"},
      {2, 1, 0, "no limit met"},
      {1, 1, 0,
       "the only place of pace.max_concurrency is taken; the next is free after an answer"},
      {1, 0, 1,
       "the only place of pace.max_concurrency is taken by an open tunnel; the next is free after "
       "the end of a tunnel"},
      {2, 1, 1,
       "all 2 places of pace.max_concurrency are taken, 1 by an open tunnel; the next is free "
       "after an answer or the end of a tunnel"},
      {3, 0, 3,
       "all 3 places of pace.max_concurrency are taken, 3 by open tunnels; the next is free after "
       "the end of a tunnel"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.sentence);
    Key key(with({.max_concurrency = row.places, .adapt = Adapt::off, .ramp = false}));
    CHECK(key.go(row.tunnels, true) == row.tunnels);
    CHECK(key.go(row.requests) == row.requests);
    CHECK(key.sentence() == row.sentence);
  }
  Key key(with({.max_concurrency = 1, .adapt = Adapt::off}));
  CHECK(key.go(1, true) == 1);
  key.lose();
  CHECK(key.state.flight.tunnels == 0);
  CHECK(key.sentence() == "no limit met");
}

TEST_CASE("pacer: linear: the first request after a refusal waits for the new delay, too") {
  Key key(with({.adapt = Adapt::linear, .step = 2s}));
  CHECK(key.go(1) == 1);
  key.at(1s).answer(Kind::rate_limited, 429);
  CHECK(key.at(2900ms).go() == 0);
  CHECK(key.next == start + 3s);
  CHECK(key.at(3s).go() == 1);
}

TEST_CASE("pacer: linear: the first request after a restart waits for the delay, too") {
  const Rules rules = with({.adapt = Adapt::linear, .step = 2s});
  Key key(rules);
  PaceMemory learned;
  learned.delay = 4s;
  key.state = pace_restored(rules, learned, start);
  CHECK(key.at(3900ms).go() == 0);
  CHECK(key.next == start + 4s);
  CHECK(key.at(4s).go(1) == 1);
}

TEST_CASE("pacer: linear: without a limit of the policy, fewer than there were at once") {
  Key key(with({.adapt = Adapt::linear, .step = 5s}));
  CHECK(key.go(4) == 4);
  for (int i = 0; i < 4; ++i) key.answer(Kind::rate_limited, 429);
  CHECK(key.state.learned.delay == 20s);
  // Four were too many: with four steps, one.
  CHECK(key.at(1min).go(1) == 1);
  CHECK(key.at(2min).go() == 0);
  CHECK(key.next == Instant::max());
}

TEST_CASE("pacer: a delay that the policy takes back is not waited for") {
  Key before(with({.min_delay = 1h, .adapt = Adapt::off}));
  CHECK(before.go() == 1);
  CHECK(before.at(1s).go() == 0);
  Key after(with({.adapt = Adapt::off}));
  after.state = before.state;
  CHECK(after.at(1s).go(1) == 1);
  // Nor one of robots.txt that it does not mind any more.
  Key polite(with({.adapt = Adapt::off, .crawl_delay = true}));
  polite.state.flight.crawl_delay = 1h;
  CHECK(polite.go() == 1);
  CHECK(polite.at(1s).go() == 0);
  after.state = polite.state;
  CHECK(after.at(1s).go(1) == 1);
}

TEST_CASE(
    "pacer: after a cooldown fewer at once, also where nothing is learned, unless told not to") {
  struct Row {
    Adapt adapt;
    bool ramp;
    unsigned go;
  };
  for (const Row row : {Row{Adapt::off, true, 1}, Row{Adapt::linear, true, 1},
                        Row{Adapt::learned, true, 1}, Row{Adapt::off, false, 50}}) {
    const Rules rules = with({.adapt = row.adapt, .ramp = row.ramp});
    Key key(rules);
    key.state.flight.gentle = 0;
    CHECK(key.go(1) == 1);
    key.at(20ms).answer(Kind::success);
    key.state.flight.latency = 20ms;
    pace_reopened(rules, key.state);
    CHECK(key.at(1s).go(50) == row.go);
    Duration t = 1s;
    // While they fail it does not grow.
    for (int i = 0; row.ramp && i < 100; ++i) {
      key.at(t += 1s).go(1);
      while (!key.tickets.empty()) key.answer(i % 2 == 0 ? Kind::server_error : Kind::success);
    }
    if (row.ramp) CHECK(key.state.flight.gentle <= 2);
    // And once they go well, as many as before.
    for (int i = 0; i < 400; ++i) {
      key.at(t += 20ms);
      while (!key.tickets.empty()) key.answer(Kind::success);
      key.go(1);
    }
    CHECK(key.state.flight.gentle == 0);
  }
}

TEST_CASE("pacer: what allows less is to be durable, and a hold outlives the process") {
  Key key;
  CHECK(key.go() == 1);
  key.at(20ms).answer(Kind::success);
  const PaceMemory before = key.state.learned;
  key.at(1s).go();
  key.answer(Kind::rate_limited, 429, 30s);
  CHECK(pace_tightens(before, key.state.learned));
  const PaceState restored = pace_restored({}, key.state.learned, start + 2s);
  CHECK(pace_opens({}, restored, start + 2s) > start + 2s);
  CHECK(pace_opens({}, restored, start + 1min) <= start + 1min);
  // It is the admission after it that teaches the limit.
  const PaceMemory refused = key.state.learned;
  CHECK(key.at(32s).go() == 1);
  key.answer(Kind::success);
  CHECK(key.state.learned.model == PaceModel::window);
  CHECK(pace_tightens(refused, key.state.learned));
}

TEST_CASE("pacer: what headers say of the next reset outlives the process") {
  const auto told = [](std::optional<std::uint64_t> limit, unsigned remaining, Duration reset) {
    Outcome outcome{.kind = Kind::success, .status = 200};
    outcome.signal.quota_count = 1;
    outcome.signal.quotas[0] = {
        .limit = limit, .remaining = remaining, .reset = reset, .window = {}};
    return outcome;
  };
  for (const std::optional<std::uint64_t> limit : {std::optional<std::uint64_t>(60), {}}) {
    Key key;
    const PaceMemory before = key.state.learned;
    CHECK(key.go(1) == 1);
    key.answer(told(limit, 0, 300s));
    const PaceMemory shut = key.state.learned;
    CHECK(pace_tightens(before, shut));
    CHECK(key.go() == 0);
    Key head;  // its body may take its time
    CHECK(head.go(1) == 1);
    CHECK(pace_exhausted({}, head.state, start, head.tickets[0], told(limit, 0, 300s)));
    CHECK(head.state.learned.hold == shut.hold);
    CHECK(head.answer(told(limit, 0, 300s)).state.learned.hold == shut.hold);
    const PaceState restored = pace_restored({}, shut, start + 10s);
    CHECK(pace_opens({}, restored, start + 10s) == start + 300s);
    CHECK(pace_opens({}, restored, start + 300s) <= start + 300s);

    SUBCASE("an operator's word is worth more") {
      pace_cleared(key.state);
      CHECK(key.at(10s).go(1) == 1);
    }
    SUBCASE("an answer that names the same end, rounded, is no news") {
      key.tickets.push_back(pace_take({}, key.state, start + 1s, 0));
      key.at(1500ms).answer(told(limit, 0, 299s));
      CHECK_FALSE(pace_tightens(shut, key.state.learned));
    }
    SUBCASE("an answer after which some are left lifts it") {
      key.tickets.push_back(pace_take({}, key.state, start + 1s, 0));
      key.at(2s).answer(told(limit, 40, 298s));
      CHECK(key.state.learned.hold == Instant{});
      CHECK(key.go(1) == 1);
    }
    SUBCASE("the next window's is written again") {
      CHECK(key.at(301s).go(1) == 1);
      key.answer(told(limit, 0, 300s));
      CHECK(pace_tightens(shut, key.state.learned));
    }
  }
  Key busy;  // nothing is left after each answer, and soon there is
  for (Duration t = 0s; t < Duration(20s); t += 1s) {
    REQUIRE(busy.at(t).go(1) == 1);
    const PaceMemory before = busy.state.learned;
    busy.answer(told({}, 0, 1s));
    CHECK_FALSE(pace_tightens(before, busy.state.learned));
  }
}

TEST_CASE("pacer: a refusal that names a time teaches a window") {
  Key key;
  key.state.flight.gentle = 0;
  CHECK(key.go(30) == 30);
  for (int i = 0; i < 29; ++i) key.at(1s).answer(Kind::success);
  key.answer(Kind::rate_limited, 429, 59s);
  CHECK(key.go() == 0);
  CHECK(key.at(61s).go() == 1);  // alone
  const PaceMemory before = key.state.learned;
  key.at(61s + 20ms).answer(Kind::success);
  CHECK(
      pace_change_sentence({}, before, key.state.learned, {.kind = Kind::success, .status = 200}) ==
      "about 29 per 60 s, from 1 refusal; before: no limit met, from 1 refusal; because it "
      "admitted with 200");
  CHECK(key.go() == 28);
  CHECK(key.sentence() == "about 29 per 60 s, from 1 refusal; next slot in 1 min 1 s");
}

TEST_CASE("pacer: a request that vanishes gives its place and its probe back") {
  Key key;
  CHECK(key.go() == 1);
  key.lose();
  CHECK(key.go() == 1);
  key.at(1s).answer(Kind::rate_limited, 429);
  CHECK(key.at(10s).go() == 1);
  CHECK(key.go() == 0);
  key.lose();
  CHECK(key.go() == 1);
}

TEST_CASE("pacer: a bucket that refuses in spite of its headers is not hammered") {
  const auto told = [](unsigned remaining) {
    Outcome outcome{.kind = Kind::success, .status = 200};
    outcome.signal.quota_count = 1;
    outcome.signal.quotas[0] = {.limit = 20, .remaining = remaining, .reset = {}, .window = 10s};
    return outcome;
  };
  Key key;
  CHECK(key.go() == 1);
  key.at(20ms).answer(told(15));
  CHECK(key.go() > 3);
  while (!key.tickets.empty()) key.at(40ms).answer(Kind::rate_limited, 429);
  unsigned sent = 0;
  for (Duration t = 40ms; t < Duration(10s); t += 5ms) {
    if (key.at(t).go() == 0) continue;
    ++sent;
    key.answer(Kind::rate_limited, 429);
  }
  CHECK(sent >= 2);
  CHECK(sent <= 20);  // what would have come in
}

TEST_CASE("pacer: answers of a bucket that never came are made up for in time") {
  Outcome outcome{.kind = Kind::success, .status = 200};
  outcome.signal.quota_count = 1;
  outcome.signal.quotas[0] = {.limit = 2, .remaining = 1, .reset = {}, .window = 1s};
  Key key;
  CHECK(key.go() == 1);
  key.at(20ms).answer(outcome);
  Duration t = 20ms;
  for (int i = 0; i < 30; ++i) {
    key.at(t += 3s);
    REQUIRE(key.go(1) == 1);
    key.lose();
  }
}

TEST_CASE("pacer: what errors alone do") {
  Key key;
  key.state.learned.known = true;
  key.state.flight.gentle = 0;
  // One in fifty fails: nothing slows.
  for (int i = 0; i < 500; ++i) {
    CHECK(key.at(i * 1ms).go(1) == 1);
    key.answer(i % 50 == 0 ? Kind::server_error : Kind::success, 500);
  }
  CHECK(key.state.flight.gentle == 0);
  // Every one does: fewer at once, but always one.
  CHECK(key.go(40) == 40);
  for (int i = 0; i < 40; ++i) key.answer(Kind::server_error, 503);
  CHECK(key.at(10s).go(40) < 10);
  CHECK(key.tickets.size() >= 1);
}

TEST_CASE("pacer: what was learned is in force after a restart, doubted when old, then forgotten") {
  PaceMemory learned;
  learned.model = PaceModel::window;
  learned.count = 10;
  learned.length = 10s;
  learned.known = true;
  learned.learned_at = start;
  learned.patience = 500;
  const auto restored = [&](Instant now) { return pace_restored({}, learned, now); };
  Key key;
  key.state = restored(start);
  CHECK(key.go() == 0);  // as if the process before had used it up just now
  CHECK(key.at(9s).go() == 0);
  CHECK(key.at(10s).go() == 1);
  CHECK(restored(start + 2 * 24h).learned.patience < 500);
  CHECK(restored(start + 2 * 24h).learned.count == 10);
  CHECK(restored(start + 30 * 24h).learned == PaceMemory{});
  learned.ban = true;
  CHECK(restored(start + 30 * 24h).learned == learned);
  learned.count = 0;  // nobody wrote that
  CHECK(restored(start).learned == PaceMemory{});
}

TEST_CASE(
    "pacer: of a long window, what was used of it is remembered, and no more is believed used") {
  PaceMemory learned;
  learned.model = PaceModel::window;
  learned.count = 80;
  learned.length = 1h;
  learned.known = true;
  learned.learned_at = start;
  learned.proven = 3;
  Key before;
  before.state = pace_restored({}, learned, start);
  before.at(1h);
  for (int i = 1; i <= 40; ++i) {
    CHECK(before.go(1) == 1);
    before.answer(Kind::success).at(1h + i * 30s);
  }
  const PaceMemory left = pace_remembered(before.state);
  const Duration died = 1h + 20min;
  const auto room = [&](Duration at) {
    Key key;
    key.state = pace_restored({}, left, start + at);
    return key.at(at).go();
  };
  // 40 are known; 11 may have gone unwritten.
  CHECK(room(died) == 80 - 40 - 11);
  CHECK(room(died + 30min) == 80 - 40 - 11);
  CHECK(room(died + 3h) == 80);
  CHECK_FALSE(pace_outdated(left, 10));
  CHECK(pace_outdated(left, 11));
  CHECK(room(2h + 10min) == 80 - 30 - 11);  // the first of them are over, the rest not yet
}

TEST_CASE("pacer: a steady stream that is slower than its limit is never held up") {
  for (const std::uint32_t count : {30u, 400u, 5000u}) {
    CAPTURE(count);
    PaceMemory learned;
    learned.model = PaceModel::window;
    learned.count = count;
    learned.length = 1h;
    learned.known = true;
    learned.learned_at = start;
    learned.proven = 3;
    Key key;
    key.state = pace_restored({}, learned, start);
    const Duration apart = Duration(1h) * 10 / 9 / count;
    for (std::uint32_t i = 0; i < 3 * count; ++i) {
      REQUIRE(key.at(1h + i * apart).go(1) == 1);
      key.answer(Kind::success);
    }
  }
}

TEST_CASE("pacer: a burst just before the end is not allowed again after it") {
  PaceMemory learned;
  learned.model = PaceModel::window;
  learned.count = 20;
  learned.length = 2s;
  learned.known = true;
  learned.learned_at = start;
  learned.proven = 3;
  Key before;
  before.state = pace_restored({}, learned, start);
  CHECK(before.at(2s).go() == 20);
  Key after;
  after.state = pace_restored({}, pace_remembered(before.state), start + 2100ms);
  CHECK(after.at(3900ms).go() == 0);
  CHECK(after.at(4100ms).go() == 20);
}

TEST_CASE("pacer: a refusal before anything was admitted tells nothing about how many may go") {
  struct Row {
    const char* name;
    Outcome refusal;
  };
  const Row rows[] = {
      {"a time is named", {.kind = Kind::rate_limited, .status = 429, .wait = 30s}},
      {"maintenance", {.kind = Kind::rate_limited, .status = 503, .wait = 30s}},
      {"a ban", {.kind = Kind::anti_bot, .status = 200}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Key key;
    CHECK(key.go() == 1);
    key.at(20ms).answer(row.refusal);
    CHECK(key.at(31s).go() == 1);  // alone
    key.at(31s + 20ms).answer(Kind::success);
    CHECK(key.state.learned.model == PaceModel::none);
    unsigned sent = 0;
    for (Duration t = 32s; t < Duration(33s); t += 20ms) {
      sent += key.at(t).go(1);
      while (!key.tickets.empty()) key.answer(Kind::success);
    }
    CHECK(sent > 20);
  }
}

TEST_CASE("pacer: whatever origins answer, somebody may always go in the end") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Key key;
    Duration t{};
    const auto answer = [&] {
      const auto what = random() % 10;
      Outcome outcome;
      outcome.kind = what < 5   ? Kind::success
                     : what < 8 ? Kind::rate_limited
                                : static_cast<Kind>(random() % 7);
      outcome.status = random() % 4 == 0 ? 503 : 429;
      if (random() % 3 == 0) outcome.wait = Duration(random() % 5'000'000);
      if (random() % 3 == 0) {
        outcome.signal.quota_count = 1;
        Quota& quota = outcome.signal.quotas[0];
        quota.absolute = random() % 2 == 0;
        if (random() % 4 != 0) quota.limit = random() % 50;
        if (random() % 4 != 0) quota.remaining = random() % 60;
        if (random() % 4 != 0) quota.reset = Duration(random() % 20'000'000);
        if (random() % 4 == 0) quota.window = Duration(random() % 20'000'000);
      }
      const auto which = random() % key.tickets.size();
      std::swap(key.tickets[0], key.tickets[which]);
      if (random() % 8 != 0) {
        pace_observe({}, key.state, key.now, key.tickets.front(), outcome);
      }
      key.lose();
    };
    for (int i = 0; i < 400; ++i) {
      key.at(t += Duration(random() % 300'000));
      key.go(static_cast<unsigned>(random() % 20));
      while (!key.tickets.empty() && random() % 3 != 0) answer();
      CHECK(key.state.flight.in_flight == key.tickets.size());
    }
    while (!key.tickets.empty()) key.lose();
    bool went = false;
    for (int i = 0; i < 50 && !went; ++i) {
      went = key.go(1) == 1;
      CHECK((went || key.next < key.now + 48h));
      if (!went) key.now = std::max(key.now, key.next);
    }
    CHECK(went);
  }
}
