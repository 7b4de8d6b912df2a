// A limit of n in any w. It fits fixed windows, sliding ones and buckets alike: what no window of
// that length ever sees more of is right for all of them.
#include <algorithm>

#include "policy/pace_models.h"

namespace sluice::pace {

Duration roundest(Duration lo, Duration hi) {
  lo = std::max(lo, Duration(0));
  constexpr Duration steps[] = {24h,  12h, 6h,  1h,  30min, 15min, 10min, 5min,
                                1min, 30s, 15s, 10s, 5s,    2s,    1s,    500ms};
  for (const Duration step : steps) {
    const Duration length = hi / step * step;
    if (length > lo) return length;
  }
  return hi;
}

Duration between(Duration lo, Duration hi) {
  const Duration part = (hi - lo) / 4;
  return roundest(lo + part, hi - part);
}

void narrow(PaceMemory& learned, Duration lo, Duration hi) {
  const Duration shortest = std::max(learned.shortest, lo);
  const Duration longest = std::min(learned.longest, hi);
  const bool agree = shortest < longest;  // else it is another window by now
  learned.shortest = agree ? shortest : lo;
  learned.longest = agree ? longest : hi;
}

// A shorter one costs a lone refusal at most: the first request of a window whose length is not
// proven goes alone. Not worth it when nothing as round as the one that held lies between.
void try_shorter(PaceState& state) {
  PaceMemory& learned = state.learned;
  const Duration longest = learned.longest;
  const Duration guess =
      roundest(std::max(learned.shortest * 21 / 20, longest * 6 / 10), longest * 17 / 20);
  const bool round = guess % std::max<Duration>(500ms, longest / 16 / 1s * 1s) == Duration(0);
  learned.coarse = guess > learned.shortest * 21 / 20 && (round || longest < Duration(1s)) &&
                   learned.longest - learned.shortest > longest / 8;
  if (!learned.coarse) return;
  learned.length = with_slack(guess);
  learned.proven = 0;
  state.flight.rolled = false;
}

Duration with_slack(Duration length) { return length + length / 200 + 15ms; }

Duration without_slack(Duration length) { return (length - 15ms) * 200 / 201; }

Instant window_opens(const PaceState& state) {
  const PaceMemory& learned = state.learned;
  const std::uint32_t others = std::min(state.flight.others, learned.count - 1);
  const Instant full_since = state.flight.log.nth_latest(learned.count - others);
  return full_since == Instant::min() ? full_since : full_since + learned.length;
}

void set_window(PaceState& state, std::uint32_t count, Duration length, Duration shortest,
                Duration longest) {
  PaceMemory& learned = state.learned;
  learned.model = PaceModel::window;
  learned.count = std::max(1u, count);
  learned.length = with_slack(length);
  learned.shortest = shortest;
  learned.longest = longest;
  learned.proven = 0;
  learned.coarse = false;
  learned.known = true;
  state.flight.gentle = 0;
}

}  // namespace sluice::pace
