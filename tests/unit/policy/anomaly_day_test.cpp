// A synthetic day, replayed after a week of the same: honest clients of many kinds, and a few that
// have gone wrong. What is told of the honest ones is a false alarm.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "policy/anomaly.h"
#include "policy/url_sketch.h"

using namespace sluice;

namespace {

constexpr int kDays = 8;  // the last one counts
constexpr Duration kDay = 24h;

struct Request {
  Duration at;
  std::uint32_t key;
  std::uint64_t url;
  bool error;
};

// Adds what one key is asked for on one day.
using Habit = std::function<void(int day, std::uint32_t key, std::vector<Request>& out)>;

class Town {
 public:
  Town() : random_(20260312) {}

  void add(const std::string& kind, int count, const Habit& habit) {
    for (int i = 0; i < count; ++i) keys_.push_back({kind, habit});
  }
  double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  Duration about(Duration time) {
    return Duration(static_cast<Duration::rep>(static_cast<double>(time.count()) * 2 * chance()));
  }
  std::uint64_t fresh_url() { return random_(); }
  bool fails(double share) { return chance() < share; }

  struct Told {
    std::map<std::string, std::set<std::uint32_t>> keys;  // by kind of key, that were told of
    std::map<std::string, Duration> latest;               // after the first request of the day
  };
  // Of the last day.
  Told replay(const AnomalyRules& rules) {
    std::vector<KeyAnomalies> unusual(keys_.size());
    std::vector<UsualRate> usual(keys_.size());
    UrlSketch urls(256 * 1024, rules.thrash.within);
    Told told;
    for (int day = 0; day < kDays; ++day) {
      std::vector<Request> requests;
      for (std::uint32_t key = 0; key < keys_.size(); ++key) keys_[key].habit(day, key, requests);
      std::sort(requests.begin(), requests.end(),
                [](const Request& a, const Request& b) { return a.at < b.at; });
      std::map<std::uint32_t, Duration> first;
      std::vector<AnomalyNews> news;
      const auto moment = [&](Duration at) {
        return AnomalyAsk{.now = Instant{1000h} + day * kDay + at,
                          .utc = UtcTime{480'000h} + day * kDay + at};
      };
      const auto note = [&](std::uint32_t key, Duration at) {
        for (const AnomalyNews& one : news) {
          if (one.what != AnomalyNews::What::began || day != kDays - 1) continue;
          told.keys[keys_[key].kind].insert(key);
          Duration& latest = told.latest[keys_[key].kind];
          latest = std::max(latest, at - first[key]);
        }
        news.clear();
      };
      for (const Request& request : requests) {
        const std::uint32_t key = request.key;
        first.try_emplace(key, request.at);
        AnomalyAsk ask = moment(request.at);
        // What was over by now has ended.
        unusual[key].tick(rules, usual[key], ask, news);
        ask.url = request.url;
        ask.times = urls.add(request.url, ask.now);
        unusual[key].asked(rules, usual[key], ask, news);
        unusual[key].answered(rules, usual[key], ask, request.error, news);
        note(key, request.at);
      }
    }
    return told;
  }
  std::size_t size() const { return keys_.size(); }

 private:
  struct Key {
    std::string kind;
    Habit habit;
  };
  std::vector<Key> keys_;
  std::mt19937_64 random_;
};

// 200 keys as they are used where nothing is wrong. A hundredth of all answers are errors.
void settle_honest_keys(Town& town) {
  const auto steadily = [&town](int day, std::uint32_t key, std::vector<Request>& out,
                                Duration from, Duration to, double per_minute) {
    static_cast<void>(day);
    const auto gap = Duration(static_cast<Duration::rep>(60e6 / per_minute));
    for (Duration at = from; at < to; at += town.about(gap)) {
      out.push_back({at, key, town.fresh_url(), town.fails(0.01)});
    }
  };
  town.add("crawler, day and night", 10,
           [=](int day, std::uint32_t key, std::vector<Request>& out) {
             steadily(day, key, out, 0h, kDay, 10 + key % 5 * 5);
           });
  town.add("nightly batch", 40, [=, &town](int day, std::uint32_t key, std::vector<Request>& out) {
    const Duration begin = 2h + town.about(20min);
    steadily(day, key, out, begin, begin + 20min + town.about(10min), 60 + key % 4 * 40);
  });
  town.add("status poll", 60, [&town](int day, std::uint32_t key, std::vector<Request>& out) {
    static_cast<void>(day);
    // Started anew at midnight, so that now and then two come close.
    for (Duration at = town.about(1min); at < kDay; at += 2min) {
      out.push_back({at, key, std::uint64_t{key} << 32 | key, town.fails(0.01)});
    }
  });
  town.add("people at work", 60, [&town](int day, std::uint32_t key, std::vector<Request>& out) {
    static_cast<void>(day);
    // A page and what is on it, now and then another one; now and then the same one again.
    for (Duration at = 8h + town.about(1h); at < 18h; at += town.about(4min)) {
      const std::uint64_t page = town.fails(0.1) ? key : town.fresh_url();
      out.push_back({at, key, page, town.fails(0.01)});
      for (int i = 0; i < 8; ++i) {
        out.push_back({at + town.about(2s), key, town.fresh_url(), town.fails(0.01)});
      }
    }
  });
  town.add("hourly report", 20, [&town](int day, std::uint32_t key, std::vector<Request>& out) {
    static_cast<void>(day);
    for (int hour = 0; hour < 24; ++hour) {
      for (int i = 0; i < 12; ++i) {
        out.push_back({hour * 1h + town.about(20s), key, town.fresh_url(), town.fails(0.01)});
      }
    }
  });
  town.add("first batch", 10, [=](int day, std::uint32_t key, std::vector<Request>& out) {
    if (day == kDays - 1) steadily(day, key, out, 11h, 13h, 90);
  });
}

double false_alarms(Town& town, const AnomalyRules& rules) {
  std::size_t told = 0;
  for (const auto& [kind, keys] : town.replay(rules).keys) told += keys.size();
  return static_cast<double>(told) / static_cast<double>(town.size());
}

}  // namespace

TEST_CASE("anomaly day: less than one honest key in twenty is told of") {
  Town town;
  settle_honest_keys(town);
  const Town::Told told = town.replay({});
  std::size_t keys = 0;
  for (const auto& [kind, ones] : told.keys) {
    MESSAGE(kind, ": ", ones.size());
    keys += ones.size();
  }
  CHECK(static_cast<double>(keys) / static_cast<double>(town.size()) < 0.05);
}

TEST_CASE("anomaly day: with rules that are too strict the same day is full of false alarms") {
  struct Row {
    const char* name;
    void (*change)(AnomalyRules&);
  };
  const Row rows[] = {
      {"no habits", [](AnomalyRules& rules) { rules.burst.times = 1, rules.burst.learn = 0s; }},
      {"a poll is a loop", [](AnomalyRules& rules) { rules.thrash.above = 1; }},
      {"any error is a spike", [](AnomalyRules& rules) { rules.error_spike.share = 0.05; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Town town;
    settle_honest_keys(town);
    AnomalyRules rules;
    row.change(rules);
    CHECK(false_alarms(town, rules) > 0.05);
  }
}

TEST_CASE("anomaly day: whoever has gone wrong is told of within five minutes") {
  Town town;
  settle_honest_keys(town);
  // On the last day only; before that each was used lightly.
  const auto wrong = [&town](Duration gap, Duration length, bool one_url, bool error) {
    return [=, &town](int day, std::uint32_t key, std::vector<Request>& out) {
      if (day < kDays - 1) {
        for (Duration at{}; at < kDay; at += 20min) {
          out.push_back({at, key, town.fresh_url(), false});
        }
        return;
      }
      for (Duration at = 1h; at < 1h + length; at += gap) {
        out.push_back(
            {at, key, one_url ? std::uint64_t{key} << 32 | key : town.fresh_url(), error});
      }
    };
  };
  town.add("2,165 times one URL", 5, wrong(2s, 2165 * 2s, true, false));
  town.add("slow loop", 5, wrong(1min, 3h, true, false));
  town.add("runaway pages", 5, wrong(200ms, 10min, false, false));
  town.add("down", 5, wrong(10s, 10min, false, true));
  const Town::Told told = town.replay({});
  for (const char* kind : {"2,165 times one URL", "slow loop", "runaway pages", "down"}) {
    CAPTURE(kind);
    REQUIRE(told.keys.contains(kind));
    CHECK(told.keys.at(kind).size() == 5);
  }
  CHECK(told.latest.at("runaway pages") <= 5min);
  CHECK(told.keys.at("2,165 times one URL").size() == 5);
}

TEST_CASE("anomaly day: a quiet week tells nothing") {
  Town town;
  town.add("now and then", 50, [&town](int day, std::uint32_t key, std::vector<Request>& out) {
    static_cast<void>(day);
    for (Duration at = town.about(1h); at < kDay; at += town.about(1h)) {
      out.push_back({at, key, town.fresh_url(), town.fails(0.02)});
    }
  });
  CHECK(town.replay({}).keys.empty());
}
