// A bucket that nobody tells about: `rate` a second, `burst` at once. Between two refusals, at
// both of which it was empty, exactly the refill was admitted; that is the pace, until a higher one
// is tried.
#include <algorithm>
#include <cmath>

#include "policy/pace_models.h"

namespace sluice::pace {
namespace {

constexpr std::uint32_t enough = 14;  // admitted, to be sure that a pace was fine
constexpr double start_share = 0.98;  // of the measured rate
constexpr std::uint32_t least_patience = 6, most_patience = 1024;  // successes

// What the log says at least came in: after `burst` was gone, the rest was refill.
double least_rate(const PaceState& state, Instant now) {
  const PaceLog& log = state.flight.log;
  double best = 0, count = 0;
  for (std::size_t i = 0; i < log.size() && log.latest(i).at >= state.flight.emptied; ++i) {
    count += log.latest(i).count;
    const double time = seconds(now - log.latest(i).at);
    // The burst is known to within one or so: over a long time that does not matter.
    if (count >= 2 * state.learned.burst + 4 && time > 0) {
      best = std::max(best, (count - state.learned.burst - 1) / time);
    }
  }
  return best;
}

}  // namespace

double bucket_pace(const PaceState& state) {
  const PaceMemory& learned = state.learned;
  if (state.flight.clean <= learned.patience) return learned.rate;
  const double beyond = state.flight.clean - learned.patience;
  if (learned.patience == 0) return learned.rate * std::pow(1.2, std::min(beyond, 40.0));
  const double growth = 1 + 0.03 * std::min(beyond * beyond, 36.0);
  return learned.rate * growth * std::pow(1.15, std::clamp(beyond - 6, 0.0, 40.0));
}

namespace {

// Our own bucket, which is a guess at theirs. `lost`: what came in when it was full.
double tokens_at(const PaceState& state, Instant now, double* lost = nullptr) {
  const PaceFlight& flight = state.flight;
  const double most = std::max(1.0, state.learned.burst);
  const double sum = flight.tokens + bucket_pace(state) * seconds(now - flight.tokens_at);
  if (lost) *lost = std::max(0.0, sum - most);
  return std::min(most, sum);
}

}  // namespace

Instant bucket_opens(const PaceState& state, Instant now) {
  const double tokens = tokens_at(state, now);
  if (tokens >= 1) return now;
  return now + from_seconds((1 - tokens) / bucket_pace(state)) + Duration(1);
}

void bucket_take(PaceState& state, Instant now) {
  PaceFlight& flight = state.flight;
  double lost = 0;
  const double tokens = tokens_at(state, now, &lost);
  if (lost > 2) {  // nobody wanted what was there: what is admitted is not what came in
    flight.idled = true;
    flight.clean = std::min(flight.clean, state.learned.patience);  // no higher pace was tried
  }
  if (tokens < 2) state.learned.learned_at = now;  // it is this pace that slows
  flight.tokens = tokens - 1;
  flight.tokens_at = now;
}

void set_tokens(PaceState& state, Instant now, double tokens) {
  state.flight.tokens = tokens;
  state.flight.tokens_at = now;
}

void start_bucket(PaceState& state, Instant now, double rate, double burst) {
  PaceMemory& learned = state.learned;
  learned.model = PaceModel::bucket;
  learned.rate = std::max(rate, least_rate_kept);
  learned.burst = std::max(burst, 1.0);
  learned.known = true;
  state.flight.gentle = 0;
  state.flight.clean = 0;
  state.flight.emptied = now;
  state.flight.since_empty = 0;
  state.flight.idled = false;
  set_tokens(state, now, 0);
}

void bucket_refused(PaceState& state, Instant now, Duration unit) {
  PaceMemory& learned = state.learned;
  PaceFlight& flight = state.flight;
  const double tried = bucket_pace(state);
  const double time = std::max(1e-3, seconds(now - flight.emptied));
  const bool seeking = flight.clean > learned.patience;
  double rate = std::max(least_rate(state, now), seeking ? 0.0 : 0.6 * learned.rate);
  if (!flight.idled && flight.since_empty >= 2) {
    const double came_in = flight.since_empty / time;
    // Refused at a pace that had been fine: there is less now, and who knows how much.
    const bool news = flight.since_empty >= enough && came_in > 0.85 * learned.rate;
    if (seeking || !news) rate = std::max(came_in, least_rate(state, now));
  }
  if (rate == 0) rate = 0.6 * learned.rate;
  rate = std::min(rate, seeking ? tried : 0.95 * learned.rate);
  const bool same = rate > 0.85 * learned.rate && rate < 1.15 * learned.rate;
  const bool fell = rate <= 0.85 * learned.rate;
  // A fast host is not asked more often than a slow one.
  const auto first = static_cast<std::uint32_t>(
      std::clamp(rate * seconds(unit) * 0.45, double{least_patience}, double{most_patience}));
  learned.patience = same   ? std::clamp(learned.patience * 2, first, most_patience)
                     : fell ? std::max(first / 2, least_patience)
                            : first;
  if (learned.ban) {
    learned.patience = edge_patience;
    rate = std::min(rate, 0.85 * learned.rate);
  }
  start_bucket(state, now, rate * start_share, learned.burst);
}

}  // namespace sluice::pace
