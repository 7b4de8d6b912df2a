// The scores of the lab in simulation: every profile, cold and warm, as medians of several runs
// that differ in network jitter and in the part of the second they begin in. To print them:
// test_policy -ns -tc='lab: table'.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "unit/policy/lab/fleet.h"

using namespace sluice;
using namespace sluice::lab;

namespace {

constexpr double quiet = 4;  // between the batches: longer than any window

struct Score {
  double rejected = 0, ratio = 0, errors = 0, jain = 0, banned = 0, outside = 0;
  int missing = 0;  // batches that were not done in time
};
struct Scores {
  Score cold, warm;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

Score summed_up(const std::vector<Batch>& batches) {
  const auto of = [&](auto part) {
    std::vector<double> values;
    for (const Batch& batch : batches) values.push_back(static_cast<double>(part(batch)));
    return median(values);
  };
  Score score;
  score.rejected = of([](const Batch& b) { return b.rejected; });
  score.ratio = of([](const Batch& b) { return b.ratio; });
  score.errors = of([](const Batch& b) { return b.client_errors; });
  score.jain = of([](const Batch& b) { return b.jain; });
  score.banned = of([](const Batch& b) { return b.banned; });
  score.outside = of([](const Batch& b) { return b.outside_refused; });
  for (const Batch& batch : batches) score.missing += batch.completed < batch.tasks ? 1 : 0;
  return score;
}

Scores scores_of(const Profile& profile, int runs, int trace = 0, double skew = 0) {
  std::vector<Batch> cold, warm;
  for (int run = 1; run <= runs; ++run) {
    Fleet fleet(lab_rules(), profile,
                {.seed = static_cast<std::uint64_t>(run), .skew = skew, .trace = trace == run});
    cold.push_back(fleet.play());
    fleet.pause(quiet);
    warm.push_back(fleet.play());
  }
  return {summed_up(cold), summed_up(warm)};
}

struct Total {
  double rejected = 0, log_ratio = 0, errors = 0, jain = 0;
  int missing = 0, profiles = 0;
  void add(const Score& score) {
    rejected += score.rejected;
    log_ratio += std::log(std::max(1.0, score.ratio));
    errors += score.errors;
    jain += score.jain;
    missing += score.missing;
    ++profiles;
  }
  Score score() const {
    return {.rejected = rejected,
            .ratio = ratio(),
            .errors = errors,
            .jain = jain / profiles,
            .missing = missing};
  }
  double ratio() const { return std::exp(log_ratio / profiles); }
};

}  // namespace

TEST_CASE("lab: each profile, cold and warm") {
  struct Row {
    const char* name;
    double cold_rejected, cold_ratio, warm_rejected, warm_ratio;
  };
  // The goals of the issue, but for these: the anti-bot profiles take as long as the policy's own
  // cooldown of 6 s makes them (1.6 would need one of less than 5.5 s); the hosts without a limit
  // are compared with an oracle that has no proxy in between.
  const Row rows[] = {
      {"fixed", 3, 1.02, 0, 1.01},     {"silent", 6, 1.05, 0, 1.02},
      {"bucket", 0, 1.01, 0, 1.01},    {"sliding", 0, 1.01, 0, 1.01},
      {"github403", 0, 1.01, 0, 1.01}, {"inflight", 2, 1.05, 0, 1.01},
      {"openai", 0, 1.01, 0, 1.01},    {"antibot", 2, 1.9, 0, 1.2},
      {"antibot-gz", 2, 1.9, 0, 1.2},  {"overload", 4, 1.5, 1, 1.1},
      {"changing", 10, 1.10, 9, 1.10}, {"shared", 0, 1.01, 0, 1.01},
      {"flaky", 0, 1.11, 0, 1.05},     {"neutral", 0, 1.09, 0, 1.02},
  };
  Total cold, warm;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Scores scores = scores_of(find_profile(row.name), 15);
    CHECK(scores.cold.rejected <= row.cold_rejected);
    CHECK(scores.cold.ratio <= row.cold_ratio);
    CHECK(scores.warm.rejected <= row.warm_rejected);
    CHECK(scores.warm.ratio <= row.warm_ratio);
    CHECK(scores.cold.missing + scores.warm.missing == 0);
    CHECK(scores.cold.jain >= 0.96);
    CHECK(scores.cold.outside + scores.warm.outside == 0);
    cold.add(scores.cold);
    warm.add(scores.warm);
  }
  CHECK(cold.rejected <= 30);
  CHECK(cold.ratio() <= 1.15);
  CHECK(cold.errors <= 4);  // the anti-bot pages themselves
  CHECK(cold.score().jain >= 0.98);
  CHECK(warm.rejected <= 9);
  CHECK(warm.ratio() <= 1.05);
  CHECK(warm.errors == 0);
  CHECK(warm.score().jain >= 0.98);
}

TEST_CASE("lab: a ban is met once and never extended") {
  for (const char* name : {"antibot", "antibot-gz"}) {
    const Scores scores = scores_of(find_profile(name), 9);
    CHECK(scores.cold.banned < 3.02);  // one of 3 s, and what was on its way
    CHECK(scores.warm.banned == 0);
  }
}

TEST_CASE("lab: numbers that nothing was tuned on") {
  Total all;
  double worst = 0;
  constexpr int seeds = 24;
  for (std::uint64_t seed = 101; seed < 101 + seeds; ++seed) {
    Total total;
    for (const Profile& profile : profiles(seed)) total.add(scores_of(profile, 3).cold);
    all.rejected += total.rejected / seeds;
    all.log_ratio += total.log_ratio / seeds;
    all.missing += total.missing;
    all.profiles = total.profiles;
    worst = std::max(worst, total.rejected);
  }
  CHECK(all.rejected <= 40);
  CHECK(worst <= 60);
  CHECK(all.ratio() <= 1.2);
  CHECK(all.missing <= 6);  // of 1008: a window of 4 s behind a ban, after which 3 s were tried
}

// Of one profile, over seeds.
struct Column {
  std::vector<double> rejected, ratio, jain;
  int missing = 0;
  void add(const Score& score) {
    rejected.push_back(score.rejected);
    ratio.push_back(score.ratio);
    jain.push_back(score.jain);
    missing += score.missing;
  }
  static double share(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
  }
  void print() const {
    double sum = 0;
    for (const double n : rejected) sum += n;
    std::printf(" %5.2f (most %3.0f), time %.3f p90 %.3f most %.3f, Jain p10 %.3f, %d missing",
                sum / static_cast<double>(rejected.size()), share(rejected, 1), share(ratio, 0.5),
                share(ratio, 0.9), share(ratio, 1), share(jain, 0.1), missing);
  }
};

// What a person wants to read. VARY: the seed of the numbers, 0 for the standard ones; SEEDS: so
// many from there on; RUNS of each; ONLY one profile; TRACE that run.
TEST_CASE("lab: table" * doctest::skip()) {
  const auto variable = [](const char* name, int otherwise) {
    const char* const text = std::getenv(name);
    return text ? std::stoi(text) : otherwise;
  };
  const char* const only = std::getenv("ONLY");
  const int first = variable("VARY", 0), seeds = variable("SEEDS", 1);
  std::map<std::string, std::pair<Column, Column>> table;
  Column cold_all, warm_all;
  for (int seed = first; seed < first + seeds; ++seed) {
    Total cold, warm;
    for (const Profile& profile : profiles(static_cast<std::uint64_t>(seed))) {
      if (only && profile.name != only) continue;
      const Scores s = scores_of(profile, variable("RUNS", 15), variable("TRACE", 0));
      table[profile.name].first.add(s.cold);
      table[profile.name].second.add(s.warm);
      cold.add(s.cold);
      warm.add(s.warm);
      const int each = variable("EACH", 0);
      if (each > 0 && (std::max(s.cold.ratio, s.warm.ratio) * 100 > each || s.cold.missing > 0)) {
        std::printf("  seed %d %s: cold %.0f %.3f, %d missing, warm %.0f %.3f\n", seed,
                    profile.name.c_str(), s.cold.rejected, s.cold.ratio, s.cold.missing,
                    s.warm.rejected, s.warm.ratio);
      }
    }
    cold_all.add(cold.score());
    warm_all.add(warm.score());
  }
  table["= all"] = {cold_all, warm_all};
  for (const auto& [name, columns] : table) {
    std::printf("%-10s cold", name.c_str());
    columns.first.print();
    std::printf("\n%-10s warm", "");
    columns.second.print();
    std::printf("\n");
  }
}

TEST_CASE("lab: an origin whose clock is five minutes off is paced all the same") {
  for (const char* name : {"sliding", "github403", "overload"}) {
    for (double skew : {-300.0, 300.0}) {
      CAPTURE(name);
      CAPTURE(skew);
      const Scores scores = scores_of(find_profile(name), 9, 0, skew);
      CHECK(scores.cold.rejected <= (std::string(name) == "overload" ? 4 : 0));
      CHECK(scores.cold.ratio <= (std::string(name) == "overload" ? 1.6 : 1.02));
      CHECK(scores.warm.rejected == 0);
    }
  }
}

TEST_CASE("lab: the second's grain of Retry-After, in whatever part of it the window begins") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Fleet fleet(lab_rules(), find_profile("fixed"), {.seed = seed});
    const Batch batch = fleet.play();
    CHECK(batch.rejected <= 4);
    CHECK(batch.ratio <= 1.03);
  }
}

TEST_CASE("lab: after a restart the learned pace is in force with the first request") {
  for (const char* name : {"fixed", "silent", "overload", "inflight"}) {
    CAPTURE(name);
    Fleet fleet(lab_rules(), find_profile(name), {.seed = 5});
    fleet.play();
    fleet.restart();
    const Batch batch = fleet.play();
    CHECK(batch.rejected == 0);
    CHECK(batch.ratio <= 1.35);  // what the process before used up is not known
  }
}

TEST_CASE("lab: a steady bucket is asked for more ever more rarely") {
  Profile steady = find_profile("changing");
  steady.limiter = steady.quota = [] {
    return std::make_unique<TokenBucket>(5.0, std::vector<RatePhase>{{1e18, 20}});
  };
  steady.tasks = 4000;
  Fleet fleet(lab_rules(), steady, {.seed = 1, .deadline = 400});
  const Batch batch = fleet.play();
  CHECK(batch.completed == batch.tasks);
  CHECK(batch.ratio <= 1.05);
  CHECK(batch.rejected <= 20);
  const auto late = std::count_if(batch.rejected_at.begin(), batch.rejected_at.end(),
                                  [](double t) { return t > 100; });
  CHECK(late <= 4);
}

TEST_CASE("lab: a quota that was used up before we came is learned with the next window") {
  Profile profile = find_profile("fixed");
  profile.limiter = [] {
    auto window = std::make_unique<FixedWindow>(20, 2.0);
    for (int i = 0; i < 20; ++i) window->take(0);
    return window;
  };
  Fleet fleet(lab_rules(), profile, {.seed = 3});
  const Batch batch = fleet.play();
  CHECK(batch.completed == batch.tasks);
  CHECK(batch.rejected <= 6);
  CHECK(fleet.pace().learned.count == 20);
}

TEST_CASE(
    "lab: a limit on concurrency that falls and rises is followed, and taken for nothing else") {
  const std::vector<int> rows[] = {{4, 2, 6}, {6, 2, 6}, {3, 1, 3}};
  for (const auto& limits : rows) {
    CAPTURE(limits.front());
    Profile profile = find_profile("inflight");
    profile.tasks = 800;
    int n = 0;
    profile.limiter = [&n] { return std::make_unique<InFlight>(n); };
    Fleet fleet(lab_rules(), profile, {.seed = 4, .deadline = 200});
    const PaceMemory& learned = fleet.pace().learned;
    for (const int limit : limits) {
      CAPTURE(limit);
      n = limit;
      int rejected = 0;
      // That there are more, it takes a while to believe.
      for (int batches = 0; batches < 4; ++batches) {
        const Batch batch = fleet.play();
        CHECK(batch.completed == batch.tasks);
        rejected += batch.rejected;
        if (learned.cap == static_cast<unsigned>(limit)) break;
      }
      CHECK(rejected <= 6);
      CHECK(learned.model == PaceModel::none);
      CHECK(learned.cap == static_cast<unsigned>(limit));
    }
  }
}

TEST_CASE("lab: a window that grows is found out, one that shrinks is kept to") {
  for (const int after : {40, 10}) {
    CAPTURE(after);
    Profile profile = find_profile("fixed");
    profile.tasks = 20000;
    int n = 20;
    profile.limiter = [&n] { return std::make_unique<FixedWindow>(n, 2.0); };
    profile.quota = profile.limiter;
    Fleet fleet(lab_rules(), profile, {.seed = 2, .deadline = 300});
    fleet.play();
    n = after;
    fleet.pause(quiet);
    const Batch batch = fleet.play();
    CHECK(batch.rejected <= 16);
    CHECK(batch.completed >= 0.5 * 150 * after);
    CHECK(fleet.pace().learned.count == doctest::Approx(after).epsilon(0.1));
  }
}
