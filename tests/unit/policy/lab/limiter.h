// The limiters that origins enforce, as state machines over time in seconds: what a learner is
// tested against. Written from their public descriptions; each admits exactly its quota.
#pragma once

#include <deque>
#include <memory>
#include <vector>

namespace sluice::lab {

struct Verdict {
  bool ok = false;
  int limit = 0;
  int remaining = 0;
  double reset = 0;  // what a header tells: to the window's end, or to a full bucket
  double retry = 0;  // until a request would be admitted
};

class Limiter {
 public:
  virtual ~Limiter() = default;
  virtual Verdict take(double t) = 0;  // t never falls
  virtual void release() {}            // an admitted request was answered
  virtual double banned() const { return 0; }
  virtual int outside_refused() const { return 0; }
};

// n per w; a window opens with the first request after the one before ended.
class FixedWindow : public Limiter {
 public:
  FixedWindow(int n, double w) : n_(n), w_(w) {}
  Verdict take(double t) override;

 private:
  int n_, used_ = 0;
  double w_, start_ = 0;
  bool open_ = false;
};

// n in any w.
class SlidingLog : public Limiter {
 public:
  SlidingLog(int n, double w) : n_(n), w_(w) {}
  Verdict take(double t) override;
  void forget() { log_.clear(); }

 private:
  int n_;
  double w_;
  std::deque<double> log_;
};

struct RatePhase {
  double until, rate;
};

// A token bucket that starts full. After its last phase the rate stays.
class TokenBucket : public Limiter {
 public:
  TokenBucket(double burst, std::vector<RatePhase> phases)
      : burst_(burst), phases_(std::move(phases)) {}
  Verdict take(double t) override;

 private:
  double earned(double from, double to) const;
  double wait(double t, double tokens) const;
  double burst_, spent_ = 0, last_ = 0;
  std::vector<RatePhase> phases_;
};

// A bucket from which somebody else takes too, whose rate alternates every 2 s.
class SharedBucket : public Limiter {
 public:
  SharedBucket(double rate, double burst, double low, double high);
  Verdict take(double t) override;
  int outside_refused() const override { return outside_refused_; }

 private:
  TokenBucket bucket_;
  double low_, high_, next_;
  int outside_refused_ = 0;
};

class InFlight : public Limiter {
 public:
  explicit InFlight(int most) : most_(most) {}
  Verdict take(double t) override;
  void release() override { --n_; }

 private:
  int most_, n_ = 0;
};

// More than n in any w starts a ban of d; every request during the ban starts it anew.
class Ban : public Limiter {
 public:
  Ban(int n, double w, double d) : n_(n), d_(d), log_(n, w) {}
  Verdict take(double t) override;
  double banned() const override { return banned_; }

 private:
  int n_;
  double d_, until_ = 0, banned_ = 0;
  SlidingLog log_;
};

// Once its bucket is empty, it sheds everything for d.
class Shed : public Limiter {
 public:
  Shed(double rate, double burst, double d) : d_(d), bucket_(burst, {{1e18, rate}}) {}
  Verdict take(double t) override;

 private:
  double d_, until_ = 0;
  TokenBucket bucket_;
};

class Unlimited : public Limiter {
 public:
  Verdict take(double) override { return {.ok = true}; }
};

// The earliest times at which `tasks` requests are all admitted.
std::vector<double> plan(Limiter& limiter, int tasks);

}  // namespace sluice::lab
