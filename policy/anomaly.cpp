#include "policy/anomaly.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

constexpr Duration kSlot = 5s;
constexpr Duration kPauseInErrors = 10min;  // answers from before a longer one say nothing of now
constexpr Duration kQuietNight = 1h;        // then a run in off-hours is over
constexpr double kLeastBaseline = 10;       // a minute: half of it is the slowest we make anybody

bool is_more(AnomalyAction a, AnomalyAction b) {
  return static_cast<std::uint8_t>(a) > static_cast<std::uint8_t>(b);
}

bool is_over(const AnomalyRules& rules, const OngoingAnomaly& anomaly, const AnomalyAsk& clock) {
  const Duration quiet = clock.now - anomaly.seen;
  if (anomaly.kind != AnomalyKind::off_hours) return quiet >= rules.end_after;
  return clock.working_hours || quiet >= std::max(rules.end_after, kQuietNight);
}

}  // namespace

const AnomalyRules::Kind& AnomalyRules::of(AnomalyKind kind) const {
  switch (kind) {
    case AnomalyKind::burst: return burst;
    case AnomalyKind::thrash: return thrash;
    case AnomalyKind::error_spike: return error_spike;
    case AnomalyKind::off_hours: break;
  }
  return off_hours;
}

void KeyAnomalies::Minute::move(Instant now) {
  const auto size = static_cast<std::int64_t>(counts.size());
  const std::int64_t current = now.time_since_epoch() / kSlot;
  if (current <= slot) return;
  const std::int64_t first = std::max(slot + 1, current - size + 1);
  for (std::int64_t i = first; i <= current; ++i) counts[static_cast<std::size_t>(i % size)] = 0;
  slot = current;
}

void KeyAnomalies::Minute::add(Instant now) {
  move(now);
  auto& count = counts[static_cast<std::size_t>(slot) % counts.size()];
  if (count < std::numeric_limits<std::uint16_t>::max()) ++count;
}

std::uint32_t KeyAnomalies::Minute::sum() const {
  std::uint32_t sum = 0;
  for (const std::uint16_t count : counts) sum += count;
  return sum;
}

const OngoingAnomaly* KeyAnomalies::find(AnomalyKind kind) const {
  for (const OngoingAnomaly& anomaly : going_on_) {
    if (anomaly.kind == kind) return &anomaly;
  }
  return nullptr;
}

bool KeyAnomalies::does(AnomalyAction action) const {
  return std::any_of(going_on_.begin(), going_on_.end(), [&](const OngoingAnomaly& anomaly) {
    return !is_more(action, anomaly.action);
  });
}

bool KeyAnomalies::follows(std::uint64_t url) const {
  if (going_on_.empty() || url == 0) return false;
  const OngoingAnomaly* thrash = find(AnomalyKind::thrash);
  return thrash != nullptr && thrash->url == url;
}

void KeyAnomalies::asked(const AnomalyRules& rules, UsualRate& usual, const AnomalyAsk& ask,
                         std::vector<AnomalyNews>& out) {
  if (ask.refused && going_on_.empty()) return;
  const OngoingAnomaly* burst = find(AnomalyKind::burst);
  if (!ask.refused || burst != nullptr) minute_.add(ask.now);
  const std::uint32_t rate = minute_.sum();
  if (!ask.refused) note_rate(usual, ask.utc, rate);
  const bool may_begin = !ask.refused && known_for(usual, ask.utc) >= rules.burst.learn;
  if (rules.burst.enabled && rate > rules.burst.above && (burst != nullptr || may_begin)) {
    const double habit = burst != nullptr ? burst->usual : usual_rate(usual, ask.utc);
    if (rate > habit * rules.burst.times) {
      usual.doubtful = 1;
      const auto in_a_minute = static_cast<std::uint32_t>(std::lround(habit));
      show(rules, {AnomalyKind::burst, rate, in_a_minute}, usual, ask, out);
    }
  }
  if (rules.thrash.enabled && ask.times > rules.thrash.above &&
      (!ask.refused || follows(ask.url))) {
    show(rules, {AnomalyKind::thrash, ask.times}, usual, ask, out);
  }
  if (rules.off_hours.enabled && !ask.working_hours &&
      (!ask.refused || find(AnomalyKind::off_hours) != nullptr)) {
    show(rules, {AnomalyKind::off_hours, rate}, usual, ask, out);
  }
}

void KeyAnomalies::answered(const AnomalyRules& rules, const UsualRate& usual,
                            const AnomalyAsk& ask, bool error, std::vector<AnomalyNews>& out) {
  if (ask.now - answered_at_ > kPauseInErrors) answers_ = 0;
  answered_at_ = ask.now;
  const unsigned of = std::clamp(rules.error_spike.of, 1u, 64u);
  errors_ = errors_ << 1 | (error ? 1u : 0u);
  answers_ = std::min(answers_ + 1, of);
  if (!rules.error_spike.enabled || !error || answers_ < of) return;
  const auto bad = static_cast<std::uint32_t>(std::popcount(errors_ << (64 - of)));
  if (bad > rules.error_spike.share * of) {
    show(rules, {AnomalyKind::error_spike, bad}, usual, ask, out);
  }
}

void KeyAnomalies::show(const AnomalyRules& rules, const Sign& sign, const UsualRate& usual,
                        const AnomalyAsk& ask, std::vector<AnomalyNews>& out) {
  const auto found = std::find_if(going_on_.begin(), going_on_.end(),
                                  [&](const OngoingAnomaly& one) { return one.kind == sign.kind; });
  if (found != going_on_.end()) {
    found->seen = ask.now;
    ++found->requests;
    found->number = std::max(found->number, sign.number);
    // The first ones came at the same moment, and had no name yet.
    if (found->url == ask.url && found->what.empty()) found->what = ask.what;
    return;
  }
  OngoingAnomaly anomaly{.kind = sign.kind,
                         .action = rules.action_of(sign.kind),
                         .since = ask.now,
                         .stepped = ask.now,
                         .seen = ask.now,
                         .requests = 1,
                         .number = sign.number,
                         .usual = sign.usual};
  if (ask.watched_only) anomaly.action = AnomalyAction::alert;
  if (sign.kind == AnomalyKind::thrash) {
    anomaly.url = ask.url;
    anomaly.what = ask.what;
  }
  out.push_back({AnomalyNews::What::began, ask.now, anomaly});
  going_on_.push_back(std::move(anomaly));
  set_pace(usual, ask);
}

void KeyAnomalies::tick(const AnomalyRules& rules, const UsualRate& usual, const AnomalyAsk& clock,
                        std::vector<AnomalyNews>& out) {
  for (OngoingAnomaly& anomaly : going_on_) {
    const bool lasts = anomaly.seen - anomaly.stepped >= rules.escalate_after;
    if (rules.escalate_after <= Duration(0) || !lasts || anomaly.pardoned) continue;
    if (anomaly.action == AnomalyAction::throttle && !clock.watched_only) {
      anomaly.action = AnomalyAction::open;
      out.push_back({AnomalyNews::What::escalated, clock.now, anomaly});
    } else if (anomaly.action == AnomalyAction::alert && anomaly.stepped == anomaly.since) {
      // What touches traffic is for whoever runs it to ask for: they hear of it once more.
      out.push_back({AnomalyNews::What::lasts, clock.now, anomaly});
    } else {
      continue;
    }
    anomaly.stepped = clock.now;
  }
  std::erase_if(going_on_, [&](OngoingAnomaly& anomaly) {
    if (!is_over(rules, anomaly, clock)) return false;
    out.push_back({AnomalyNews::What::ended, clock.now, std::move(anomaly)});
    return true;
  });
  set_pace(usual, clock);
}

void KeyAnomalies::pardon(Instant now, std::vector<AnomalyNews>& out) {
  for (OngoingAnomaly& anomaly : going_on_) {
    if (anomaly.pardoned) continue;
    anomaly.pardoned = true;
    anomaly.action = AnomalyAction::alert;
    out.push_back({AnomalyNews::What::pardoned, now, anomaly});
  }
  spacing_ = {};
  next_at_ = {};
}

// Half of the busiest minute so far, whichever of what was seen or is usual is more. It stays as it
// was set: what is halved must not be halved again because it is slower now.
void KeyAnomalies::set_pace(const UsualRate& usual, const AnomalyAsk& ask) {
  if (!does(AnomalyAction::throttle)) {
    spacing_ = {};
    next_at_ = {};
    return;
  }
  if (spacing_ > Duration(0)) return;
  const double seen = std::max<double>(minute_.sum(), usual.peak);
  const double pace = std::max({seen, usual_rate(usual, ask.utc), kLeastBaseline}) / 2;
  spacing_ = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(60 / pace));
}

std::string_view anomaly_word(AnomalyKind kind) {
  switch (kind) {
    case AnomalyKind::burst: return "burst";
    case AnomalyKind::thrash: return "thrash";
    case AnomalyKind::error_spike: return "error-spike";
    case AnomalyKind::off_hours: break;
  }
  return "off-hours";
}

std::string_view action_word(AnomalyAction action) {
  switch (action) {
    case AnomalyAction::alert: return "alert";
    case AnomalyAction::throttle: return "throttle";
    case AnomalyAction::open: break;
  }
  return "open";
}

}  // namespace sluice
