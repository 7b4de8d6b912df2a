// The list of anomalies: what is shown, told, written down for the commands, and that it is
// bounded.
#include "proxy/governor/anomaly_board.h"

#include <doctest/doctest.h>
#include <spdlog/spdlog.h>

#include "proxy/governor/gate.h"
#include "store/memory.h"

using namespace sluice;

namespace {

using What = AnomalyNews::What;

ClockPair clock(Duration since) { return {Instant{1000h} + since, UtcTime{480'000h} + since, 7}; }

class Board {
 public:
  void tell(const std::string& key, What what, Duration at,
            AnomalyAction action = AnomalyAction::alert, AnomalyKind kind = AnomalyKind::thrash) {
    const AnomalyNews news{
        what, clock(at).mono, {.kind = kind, .action = action, .since = clock(0s).mono}};
    board.report(nullptr, key, news, clock(at));
  }
  std::string stored(Duration at) {
    std::string out;
    const auto noted = load_anomalies(store, clock(at));
    REQUIRE(noted);
    for (const NotedAnomaly& one : *noted) {
      out += one.key + " " + std::string(anomaly_word(one.kind)) + " " +
             std::string(action_word(one.action)) + "; ";
    }
    return out;
  }

  MemoryStore store;
  AnomalyRules rules;
  AnomalyBoard board{store, rules};
};

}  // namespace

TEST_CASE("anomaly board: those that go on, then the latest that ended") {
  Board all;
  all.tell("b.test", What::began, 0s);
  all.tell("a.test", What::began, 0s);
  all.tell("a.test", What::began, 0s, AnomalyAction::open, AnomalyKind::burst);
  all.tell("b.test", What::escalated, 300s, AnomalyAction::throttle);
  all.tell("a.test", What::ended, 400s);
  all.tell("c.test", What::began, 400s);
  all.tell("c.test", What::ended, 500s);
  const auto listed = all.board.listed();
  REQUIRE(listed.size() == 4);
  CHECK(listed[0].key == "a.test");
  CHECK(listed[0].kind == AnomalyKind::burst);
  CHECK(listed[1].key == "b.test");
  CHECK(listed[1].action == AnomalyAction::throttle);
  CHECK(listed[1].since == clock(0s).utc);
  CHECK(!listed[1].ended);
  CHECK(listed[2].key == "c.test");
  CHECK(listed[3].key == "a.test");
  CHECK(listed[3].ended == clock(400s).utc);
  const auto begun = all.board.begun();
  CHECK(begun[static_cast<std::size_t>(AnomalyKind::thrash)] == 3);
  CHECK(begun[static_cast<std::size_t>(AnomalyKind::burst)] == 1);

  const auto events = all.store.events(0, 100);
  REQUIRE(events);
  REQUIRE(events->size() == 7);
  CHECK((*events)[3].event.kind == EventKind::anomaly);
  CHECK((*events)[3].event.key == "b.test");
  CHECK((*events)[3].event.text == listed[1].sentence);
}

TEST_CASE("anomaly board: commands see what goes on, as long as the process is there") {
  Board all;
  all.tell("b.test", What::began, 0s);
  all.tell("a.test", What::began, 0s, AnomalyAction::open);
  CHECK(all.stored(0s) == "");
  all.board.save(clock(1s));
  CHECK(all.stored(1s) == "a.test thrash open; b.test thrash alert; ");
  CHECK(all.stored(1s + kAnomaliesHold + 1s) == "");
  for (int minute = 1; minute <= 10; ++minute) all.board.save(clock(minute * 1min));
  CHECK(all.stored(10min) == "a.test thrash open; b.test thrash alert; ");
  all.tell("a.test", What::ended, 10min);
  all.board.save(clock(10min));
  CHECK(all.stored(10min) == "b.test thrash alert; ");
  all.board.close(clock(10min));
  CHECK(all.stored(10min) == "");
}

TEST_CASE("anomaly board: two processes on one store are both seen") {
  Board one;
  AnomalyBoard other(one.store, one.rules);
  one.tell("b.test", What::began, 0s);
  one.board.save(clock(0s));
  other.report(nullptr, "a.test", {What::began, clock(0s).mono, {}}, clock(0s));
  other.save(clock(0s));
  CHECK(one.stored(0s) == "a.test burst alert; b.test thrash alert; ");
}

TEST_CASE("anomaly board: very many are counted, and not listed") {
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);
  Board all;
  const int many = 5000;
  for (int i = 0; i < many; ++i) all.tell("key" + std::to_string(i) + ".test", What::began, 0s);
  CHECK(all.board.listed().size() == AnomalyBoard::kMostListed);
  CHECK(all.board.begun()[static_cast<std::size_t>(AnomalyKind::thrash)] == many);
  all.board.save(clock(0s));
  const auto noted = load_anomalies(all.store, clock(0s));
  REQUIRE(noted);
  CHECK(noted->size() > 100);
  for (int i = 0; i < many; ++i) all.tell("key" + std::to_string(i) + ".test", What::ended, 1s);
  CHECK(all.board.listed().size() == AnomalyBoard::kMostEnded);
  CHECK(all.store.events(0, kMaxPageEntries)->size() == 2 * AnomalyBoard::kMostListed);
  spdlog::set_level(level);
}

TEST_CASE("anomaly board: what the store cannot hold is told another way") {
  class FullStore : public MemoryStore {
   public:
    void append(const Event&, Completion done) override {
      complete(done, Error{"the disk is full"});
    }
  };
  FullStore store;
  const AnomalyRules rules;
  std::vector<std::string> lost;
  AnomalyBoard board(store, rules, [&](const Event& event) { lost.push_back(event.text); });
  const AnomalyNews news{What::began, clock(0s).mono, {.kind = AnomalyKind::thrash}};
  board.report(nullptr, "a.test", news, clock(0s));
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].starts_with("a.test"));
}
