#include "policy/usual_rate.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

constexpr double kRise = 0.5;                     // of the way to a busier hour
constexpr double kRiseInDoubt = 0.125;            // so that a runaway is no habit after one night
constexpr double kFall = 0.125;                   // a weekly job is remembered from week to week
constexpr std::int64_t kLongestMemory = 24 * 90;  // hours; after that everything has faded

std::int64_t hour_of(UtcTime now) {
  return std::chrono::floor<std::chrono::hours>(now.time_since_epoch()).count();
}

std::size_t slot_of(std::int64_t hour) {
  const auto slots = static_cast<std::int64_t>(UsualRate::hours);
  return static_cast<std::size_t>((hour % slots + slots) % slots);
}

std::uint16_t rounded(double rate) {
  return static_cast<std::uint16_t>(std::clamp(std::round(rate), 0.0, 65535.0));
}

void learn(std::uint16_t& known, double seen, bool in_doubt) {
  const double rise = in_doubt ? kRiseInDoubt : kRise;
  known = rounded(known + (seen - known) * (seen > known ? rise : kFall));
}

// The running hour is over, and so are those since then in which nothing came.
void turn_over(UsualRate& usual, std::int64_t hour) {
  learn(usual.peaks[slot_of(usual.hour)], usual.peak, usual.doubtful != 0);
  const std::int64_t first = std::max(usual.hour + 1, hour - kLongestMemory);
  for (std::int64_t quiet = first; quiet < hour; ++quiet)
    learn(usual.peaks[slot_of(quiet)], 0, false);
  usual.peak = 0;
  usual.doubtful = 0;
}

}  // namespace

void note_rate(UsualRate& usual, UtcTime now, std::uint32_t per_minute) {
  const std::int64_t hour = hour_of(now);
  if (usual.hour == 0) usual.since = now;
  if (usual.hour != 0 && hour > usual.hour) turn_over(usual, hour);
  usual.hour = hour;  // also when the clock went back
  usual.since = std::min(usual.since, now);
  usual.peak = std::max(usual.peak, rounded(per_minute));
}

double usual_rate(const UsualRate& usual, UtcTime now) {
  const std::int64_t hour = hour_of(now);
  double rate = *std::max_element(usual.peaks.begin(), usual.peaks.end()) / 2.0;
  for (const std::int64_t near : {hour - 1, hour, hour + 1}) {
    rate = std::max<double>(rate, usual.peaks[slot_of(near)]);
  }
  return rate;
}

Duration known_for(const UsualRate& usual, UtcTime now) {
  return usual.hour == 0 ? Duration(0) : std::max<Duration>(now - usual.since, Duration(0));
}

UsualRate joined(UsualRate stored, const UsualRate& ours) {
  if (stored.hour == 0 || ours.hour == 0) return stored.hour == 0 ? ours : stored;
  for (std::size_t i = 0; i < UsualRate::hours; ++i) {
    stored.peaks[i] = std::max(stored.peaks[i], ours.peaks[i]);
  }
  if (ours.hour > stored.hour) turn_over(stored, ours.hour);
  if (ours.hour >= stored.hour) {
    stored.peak = std::max(stored.peak, ours.peak);
    stored.doubtful |= ours.doubtful;
    stored.hour = ours.hour;
  }
  stored.since = std::min(stored.since, ours.since);
  return stored;
}

}  // namespace sluice
