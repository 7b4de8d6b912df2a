// A place in `limits` and a price together: taken both or not at all, with roles, observers, prices
// that only answers name, and a store that fails.
#include "proxy/governor/allowances.h"

#include <doctest/doctest.h>

#include "proxy/clock.h"
#include "proxy/cost_report.h"
#include "store/memory.h"

using namespace sluice;

namespace {

using Kind = Allowances::Answer::Kind;

class FailingStore : public MemoryStore {
 public:
  void update(std::string key, Edit edit, Completion done) override {
    if (broken) return complete(done, Error{"the disk is full"});
    MemoryStore::update(std::move(key), std::move(edit), std::move(done));
  }
  bool broken = false;
};

struct Desk {
  explicit Desk(bool go_on = false)
      : allowances(store, {budget(), Zone(), go_on},
                   [this](const std::string& key) { told.push_back(key); }) {
    policy.name = "p";
    policy.roles.resize(1);
    policy.roles[0].name = "download";
  }
  static BudgetConfig budget() {
    BudgetConfig config;
    config.daily = 1;  // 0.80 may be spent
    return config;
  }
  Journey journey(bool in_role = false) {
    Journey who;
    who.match.policy = &policy;
    who.match.role = in_role ? policy.roles.data() : nullptr;
    who.match.rules = in_role ? &policy.roles[0].rules : &policy.rules;
    who.cost = cost_of(who.match.rules->cost, "h.test", "/", false);
    return who;
  }
  Kind take(bool in_role = false) { return allowances.take("h.test", journey(in_role)).kind; }
  int take_all(bool in_role = false) {
    int count = 0;
    while (count < 1000 && take(in_role) == Kind::go) ++count;
    return count;
  }
  CostReport report() {
    allowances.close();
    auto made = cost_report(store, budget(), Zone(), utc_now());
    REQUIRE(made);
    return *made;
  }

  FailingStore store;
  Policy policy;
  std::vector<std::string> told;
  Allowances allowances;
};

}  // namespace

TEST_CASE("allowances: what is free concerns nobody") {
  Desk desk;
  CHECK_FALSE(Allowances::concern(desk.journey()));
  CHECK(desk.journey().cost == nullptr);
  desk.policy.rules.cost.paths = {{"/dear/*", 1.0}};
  CHECK(desk.journey().cost == nullptr);  // "/" is none of them
  desk.policy.rules.cost.header = "x-cost";
  REQUIRE(desk.journey().cost != nullptr);
  CHECK(desk.journey().cost->price == 0);
}

TEST_CASE("allowances: no money, no place: the place is there for others") {
  Desk desk;
  desk.policy.rules.limits.requests = {{10, 1h}};
  desk.policy.rules.cost.per_request = 0.5;
  CHECK(desk.take() == Kind::go);
  for (int i = 0; i < 20; ++i) CHECK(desk.take() == Kind::budget);
  CHECK(desk.allowances.stopped(desk.journey()));
  desk.policy.rules.cost.per_request = 0;
  CHECK_FALSE(desk.allowances.stopped(desk.journey()));
  CHECK(desk.take_all() == 9);
  CHECK(desk.take() == Kind::limit);
}

TEST_CASE("allowances: given back, both are there again") {
  Desk desk;
  desk.policy.rules.limits.requests = {{3, 1h}};
  desk.policy.rules.cost.per_request = 0.2;
  for (int i = 0; i < 50; ++i) {
    const auto answer = desk.allowances.take("h.test", desk.journey());
    REQUIRE(answer.kind == Kind::go);
    CHECK_FALSE(answer.taken.empty());
    desk.allowances.give_back("h.test", desk.journey(), answer.taken);
  }
  CHECK(desk.take_all() == 3);
}

TEST_CASE("allowances: a role with limits of its own has windows of its own") {
  Desk desk;
  desk.policy.rules.limits.requests = {{5, 1h}};
  desk.policy.roles[0].rules = desk.policy.rules;
  SUBCASE("with the same limits it shares them") {
    CHECK(desk.take_all(true) == 5);
    CHECK(desk.take() == Kind::limit);
  }
  SUBCASE("with others it does not, in whatever order they ask") {
    desk.policy.roles[0].rules.limits.requests = {{2, 1h}};
    CHECK(desk.take(true) == Kind::go);
    CHECK(desk.take() == Kind::go);
    CHECK(desk.take(true) == Kind::go);
    CHECK(desk.take(true) == Kind::limit);
    CHECK(desk.take_all() == 4);
    CHECK(desk.take(true) == Kind::limit);
  }
}

TEST_CASE("allowances: who only observes is let through, counted, and told") {
  Desk desk;
  desk.policy.rules.mode = Mode::observe;
  SUBCASE("limits") {
    desk.policy.rules.limits.requests = {{2, 1h}};
    CHECK(desk.take_all() == 1000);
    CHECK_FALSE(desk.allowances.take("h.test", desk.journey()).why.empty());
  }
  SUBCASE("the budget") {
    desk.policy.rules.cost.per_request = 0.3;
    std::string why;
    for (int i = 0; i < 5; ++i) {
      const auto answer = desk.allowances.take("h.test", desk.journey());
      REQUIRE(answer.kind == Kind::go);
      why = answer.why;
      desk.allowances.spent(desk.journey(), answer.taken, {.named = 300'000});
    }
    CHECK(why.find("is used up to its stop mark") != std::string::npos);
    CHECK_FALSE(desk.allowances.stopped(desk.journey()));
    const CostReport report = desk.report();
    CHECK(report.day.used == 1'500'000);
    CHECK(report.day.spent == 1'500'000);
    CHECK(report.day.requests == 5);
  }
}

// By a header alone: as expensive as the dearest answer so far.
struct HeaderDesk : Desk {
  HeaderDesk() { policy.rules.cost.header = "x-cost"; }
  Allowances::Answer ask(const std::string& key = "h.test") {
    return allowances.take(key, journey());
  }
  void end(const Allowances::Answer& taken, std::optional<Micros> named, bool answered = true) {
    end(taken, Allowances::Bill{.named = named, .answered = answered});
  }
  void end(const Allowances::Answer& taken, const Allowances::Bill& bill) {
    allowances.spent(journey(), taken.taken, bill);
    allowances.tell_ready();
  }
};

TEST_CASE("allowances: of a crowd whose price nobody knows, one finds out") {
  HeaderDesk desk;
  const auto first = desk.ask();
  REQUIRE(first.kind == Kind::go);
  for (const char* key : {"h.test", "g.test", "h.test"}) {
    const auto next = desk.ask(key);
    CHECK(next.kind == Kind::price);
    CHECK(next.why.find("x-cost") != std::string::npos);
    CHECK(next.taken.empty());
  }
  CHECK(desk.told.empty());
  desk.end(first, 300'000);
  CHECK(desk.told == std::vector<std::string>{"g.test", "h.test"});
  const auto second = desk.ask();
  CHECK(second.taken.money == 300'000);
  CHECK(desk.ask().kind == Kind::budget);  // 0.60 are gone, 0.20 are left
  desk.end(second, 10'000);
  CHECK(desk.ask().taken.money == 300'000);
}

TEST_CASE("allowances: who found out nothing makes room for the next one") {
  HeaderDesk desk;
  desk.policy.rules.limits.requests = {{100, 1h}};
  for (int i = 0; i < 3; ++i) {
    const auto taken = desk.ask();
    REQUIRE(taken.kind == Kind::go);
    REQUIRE(desk.ask("g.test").kind == Kind::price);
    SUBCASE("an answer without a price") { desk.end(taken, std::nullopt); }
    SUBCASE("no answer") { desk.end(taken, std::nullopt, false); }
    SUBCASE("nothing was sent") {
      desk.allowances.give_back("h.test", desk.journey(), taken.taken);
      desk.allowances.tell_ready();
    }
    CHECK(desk.told == std::vector<std::string>(static_cast<std::size_t>(i) + 1, "g.test"));
  }
  CHECK(desk.report().day.used == 0);
}

TEST_CASE("allowances: other processes and the next start know the price") {
  HeaderDesk desk;
  Allowances other(desk.store, {Desk::budget(), Zone(), false}, [](const std::string&) {});
  const auto beside = other.take("h.test", desk.journey());
  REQUIRE(beside.kind == Kind::go);
  REQUIRE(other.take("h.test", desk.journey()).kind == Kind::price);
  desk.end(desk.ask(), 200'000);
  other.tidy();
  CHECK(other.take("h.test", desk.journey()).taken.money == 200'000);
  Allowances next(desk.store, {Desk::budget(), Zone(), false}, [](const std::string&) {});
  CHECK(next.take("h.test", desk.journey()).taken.money == 200'000);
}

TEST_CASE("allowances: what a policy declares goes at once, until an answer names more") {
  HeaderDesk desk;
  desk.policy.rules.cost.per_request = 0.1;
  const auto first = desk.ask(), second = desk.ask();
  CHECK(first.taken.money == 100'000);
  CHECK(second.taken.money == 100'000);
  desk.end(first, 20'000);
  CHECK(desk.ask().taken.money == 100'000);
  desk.end(second, 250'000);
  CHECK(desk.ask().taken.money == 250'000);
}

TEST_CASE("allowances: sent and never answered, it may have cost what it was expected to") {
  HeaderDesk desk;
  desk.end(desk.ask(), 100'000);
  desk.end(desk.ask(), std::nullopt, false);
  desk.end(desk.ask(), std::nullopt, true);  // answered, and the answer has named nothing
  CHECK(desk.report().day.used == 200'000);
}

TEST_CASE("allowances: a price that cannot be read is the dearest known, and teaches nothing") {
  HeaderDesk desk;
  const Allowances::Bill strange{.unreadable = "0.01 USD"};
  SUBCASE("none is known: the smallest coin, and one at a time") {
    for (int i = 0; i < 3; ++i) {
      const auto taken = desk.ask();
      REQUIRE(taken.kind == Kind::go);
      REQUIRE(desk.ask("g.test").kind == Kind::price);
      desk.end(taken, strange);
    }
    CHECK(desk.report().day.used == 3);
  }
  SUBCASE("one was named") {
    desk.end(desk.ask(), 100'000);
    desk.end(desk.ask(), strange);
    CHECK(desk.report().day.used == 200'000);
  }
  SUBCASE("the policy declares one") {
    desk.policy.rules.cost.per_request = 0.1;
    desk.end(desk.ask(), strange);
    CHECK(desk.report().day.used == 100'000);
  }
  SUBCASE("another field can be read") {
    desk.end(desk.ask(), {.named = 100'000, .unreadable = "0.01 USD"});
    CHECK(desk.report().day.used == 100'000);
  }
}

TEST_CASE("allowances: nobody waits for a price that exceeds nothing") {
  HeaderDesk desk;
  SUBCASE("the policy only observes") {
    desk.policy.rules.mode = Mode::observe;
    for (int i = 0; i < 5; ++i) CHECK(desk.ask().kind == Kind::go);
  }
  SUBCASE("there is no budget") {
    Allowances free(desk.store, {{}, Zone(), false}, [](const std::string&) {});
    for (int i = 0; i < 5; ++i) CHECK(free.take("h.test", desk.journey()).kind == Kind::go);
  }
  SUBCASE("nobody looks into the tunnel") {
    CHECK(cost_of(desk.policy.rules.cost, "h.test", "", true) == nullptr);
  }
}

TEST_CASE("allowances: a store that fails is named, or does not matter") {
  for (const bool local : {false, true}) {
    for (const bool money : {false, true}) {
      CAPTURE(local);
      CAPTURE(money);
      Desk desk(local);
      if (money) {
        desk.policy.rules.cost.per_request = 0.1;
      } else {
        desk.policy.rules.limits.requests = {{5, 1h}};
      }
      desk.store.broken = true;
      desk.take();
      const auto answer = desk.allowances.take("h.test", desk.journey());
      CHECK(answer.kind == (local ? Kind::go : Kind::failed));
      if (!local) CHECK(answer.why == "the disk is full");
      if (local && money) CHECK(desk.take_all() < 8);  // in memory, to the same mark
    }
  }
}
