#include "unit/policy/lab/profile.h"

#include <algorithm>
#include <random>
#include <stdexcept>

namespace sluice::lab {
namespace {

template <class T, class... Args>
auto maker(Args... args) {
  return [=]() -> std::unique_ptr<Limiter> { return std::make_unique<T>(args...); };
}
auto bucket(double rate, double burst) {
  return maker<TokenBucket>(burst, std::vector<RatePhase>{{1e18, rate}});
}

class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : vary_(seed != 0), random_(seed) {}
  double between(double standard, double lo, double hi) {
    if (!vary_) return standard;
    return lo + static_cast<double>(random_() >> 11) * 0x1p-53 * (hi - lo);
  }
  int count(int standard, int lo, int hi) {
    return static_cast<int>(between(standard, lo, hi + 1));
  }
  double window(double standard) {
    constexpr double lengths[] = {1.5, 2, 2, 2.5, 3, 3, 4};
    return vary_ ? lengths[random_() % 7] : standard;
  }
  double latency(double standard) { return between(standard, standard / 2, 2 * standard); }
  // What the quota allows in 7 s.
  int batch(int standard, Limiter& quota) const {
    if (!vary_) return standard;
    const auto times = plan(quota, 2000);
    const auto n =
        static_cast<int>(std::lower_bound(times.begin(), times.end(), 7.0) - times.begin());
    return n < 16 ? 16 : n - n % 8;
  }

 private:
  bool vary_;
  std::mt19937_64 random_;
};

std::string policy_of(double rate) { return std::to_string(static_cast<int>(rate)) + ";w=1"; }

}  // namespace

double Profile::oracle_time(double network) const {
  constexpr double slack = 0.040;
  const double trip = latency + 2 * network;
  if (unlimited) return (tasks + 15) / 16 * trip * (1 + fail_pct / 100.0);
  if (in_flight > 0) return (tasks + in_flight - 1) / in_flight * trip;
  return plan(*quota(), tasks).back() * 1.005 + slack + trip;
}

std::vector<Profile> profiles(std::uint64_t seed) {
  Numbers r(seed);
  std::vector<Profile> all;
  const auto add = [&](Profile p, double latency = 20) {
    if (!p.quota) p.quota = p.limiter;
    p.latency = r.latency(latency) / 1000;
    if (p.in_flight == 0 && !p.unlimited) p.tasks = r.batch(p.tasks, *p.quota());
    all.push_back(std::move(p));
  };
  int n = r.count(20, 8, 40);
  double w = r.window(2);
  add({.name = "fixed",
       .style = Style::retry_seconds,
       .tasks = 80,
       .limiter = maker<FixedWindow>(n, w)});
  n = r.count(12, 8, 30);
  w = r.window(3);
  add({.name = "silent", .tasks = 48, .limiter = maker<FixedWindow>(n, w)});
  double rate = r.count(10, 6, 24), burst = r.count(10, 3, 30);
  add({.name = "bucket",
       .style = Style::ietf,
       .policy = policy_of(rate),
       .tasks = 80,
       .limiter = bucket(rate, burst)});
  n = r.count(30, 8, 50);
  w = r.window(3);
  add({.name = "sliding",
       .style = Style::github,
       .tasks = 120,
       .limiter = maker<SlidingLog>(n, w)});
  n = r.count(30, 8, 50);
  w = r.window(3);
  add({.name = "github403",
       .style = Style::github403,
       .tasks = 120,
       .limiter = maker<FixedWindow>(n, w)});
  n = r.count(4, 2, 9);
  add({.name = "inflight", .tasks = 200, .limiter = maker<InFlight>(n), .in_flight = n}, 100);
  rate = r.between(20, 8, 40);
  burst = r.count(5, 2, 12);
  add({.name = "openai", .style = Style::openai, .tasks = 120, .limiter = bucket(rate, burst)});
  for (const char* name : {"antibot", "antibot-gz"}) {
    n = r.count(10, 6, 20);
    w = r.window(2);
    const double d = r.between(3, 1.5, 6);
    add({.name = name,
         .style = Style::bot_page,
         .tasks = 40,
         .limiter = maker<Ban>(n, w, d),
         .quota = maker<SlidingLog>(n, w)});
  }
  rate = r.count(15, 8, 30);
  const double shed = r.between(2, 1, 4);
  add({.name = "overload",
       .style = Style::retry_date,
       .tasks = 96,
       .limiter = maker<Shed>(rate, rate, shed),
       .quota = bucket(rate, rate)});
  const double r0 = r.between(16, 10, 24), r1 = r.between(8, 4, 10), r2 = r.between(32, 20, 40);
  add({.name = "changing",
       .tasks = 160,
       .limiter = maker<TokenBucket>(5.0, std::vector<RatePhase>{{3, r0}, {6, r1}, {1e18, r2}})});
  rate = r.count(20, 18, 30);
  const double low = r.between(4, 2, 6), high = r.between(14, 9, 15);
  std::vector<RatePhase> left;
  for (double at = 0; at < 600; at += 4) {
    left.push_back({at + 2, rate - low});
    left.push_back({at + 4, rate - high});
  }
  add({.name = "shared",
       .style = Style::ietf,
       .policy = policy_of(rate),
       .tasks = 96,
       .limiter = maker<SharedBucket>(rate, 10.0, low, high),
       .quota = maker<TokenBucket>(9.0, left)});
  add({.name = "flaky",
       .tasks = 800,
       .limiter = maker<Unlimited>(),
       .unlimited = true,
       .fail_pct = 2});
  add({.name = "neutral",
       .tasks = 800,
       .limiter = maker<Unlimited>(),
       .unlimited = true,
       .neutral_pct = 70});
  return all;
}

Profile find_profile(const std::string& name, std::uint64_t seed) {
  for (auto& profile : profiles(seed)) {
    if (profile.name == name) return profile;
  }
  throw std::invalid_argument("no profile " + name);
}

}  // namespace sluice::lab
