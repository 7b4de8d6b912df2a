#include "unit/policy/lab/limiter.h"

#include <algorithm>

namespace sluice::lab {

Verdict FixedWindow::take(double t) {
  if (!open_ || t >= start_ + w_) {
    start_ = t;
    used_ = 0;
    open_ = true;
  }
  const double left = start_ + w_ - t;
  if (used_ >= n_) return {.limit = n_, .reset = left, .retry = left};
  ++used_;
  return {.ok = true, .limit = n_, .remaining = n_ - used_, .reset = left};
}

Verdict SlidingLog::take(double t) {
  while (!log_.empty() && log_.front() + w_ <= t) log_.pop_front();
  const auto used = static_cast<int>(log_.size());
  if (used >= n_) {
    const double wait = log_.front() + w_ - t;
    return {.limit = n_, .reset = wait, .retry = wait};
  }
  log_.push_back(t);
  return {.ok = true, .limit = n_, .remaining = n_ - used - 1, .reset = log_.front() + w_ - t};
}

double TokenBucket::earned(double from, double to) const {
  double sum = 0;
  for (std::size_t i = 0; i < phases_.size() && from < to; ++i) {
    const double end = i + 1 == phases_.size() ? to : std::min(to, phases_[i].until);
    if (end <= from) continue;
    sum += (end - from) * phases_[i].rate;
    from = end;
  }
  return sum;
}

double TokenBucket::wait(double t, double tokens) const {
  double from = t;
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const bool last = i + 1 == phases_.size();
    if (!last && phases_[i].until <= from) continue;
    const double have = (phases_[i].until - from) * phases_[i].rate;
    if (!last && have < tokens) {
      tokens -= have;
      from = phases_[i].until;
      continue;
    }
    return from + tokens / phases_[i].rate - t;
  }
  return 1e18;
}

Verdict TokenBucket::take(double t) {
  constexpr double grain = 1e-9;
  spent_ = std::max(0.0, spent_ - earned(last_, t));
  last_ = t;
  Verdict verdict{.limit = static_cast<int>(burst_)};
  if (spent_ + 1 > burst_ + grain) {
    verdict.retry = verdict.reset = wait(t, spent_ + 1 - burst_);
    return verdict;
  }
  spent_ += 1;
  verdict.ok = true;
  verdict.remaining = static_cast<int>(burst_ - spent_ + grain);
  verdict.reset = wait(t, spent_);
  return verdict;
}

SharedBucket::SharedBucket(double rate, double burst, double low, double high)
    : bucket_(burst, {{1e18, rate}}), low_(low), high_(high), next_(1 / low) {}

Verdict SharedBucket::take(double t) {
  while (next_ <= t) {
    if (!bucket_.take(next_).ok) ++outside_refused_;
    const auto phase = static_cast<long>(next_ / 2) % 2;
    next_ += 1 / (phase == 0 ? low_ : high_);
  }
  return bucket_.take(t);
}

Verdict InFlight::take(double) {
  if (n_ >= most_) return {.limit = most_};
  ++n_;
  return {.ok = true, .limit = most_, .remaining = most_ - n_};
}

Verdict Ban::take(double t) {
  if (t < until_) {
    banned_ += t + d_ - until_;
    until_ = t + d_;
    return {.limit = n_, .retry = d_};
  }
  if (const Verdict verdict = log_.take(t); verdict.ok) return verdict;
  log_.forget();
  banned_ += d_;
  until_ = t + d_;
  return {.limit = n_, .retry = d_};
}

Verdict Shed::take(double t) {
  if (t < until_) return {.retry = until_ - t};
  Verdict verdict = bucket_.take(t);
  if (!verdict.ok) {
    until_ = t + d_;
    verdict.retry = d_;
  }
  return verdict;
}

std::vector<double> plan(Limiter& limiter, int tasks) {
  std::vector<double> times;
  for (double t = 0; static_cast<int>(times.size()) < tasks;) {
    const Verdict verdict = limiter.take(t);
    if (verdict.ok) {
      times.push_back(t);
    } else {
      t += verdict.retry + 1e-9;
    }
  }
  return times;
}

}  // namespace sluice::lab
