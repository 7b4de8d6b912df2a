#include <cmath>
#include <cstdio>
#include <string>

#include "policy/pace_models.h"
#include "policy/units.h"

namespace sluice {
namespace {

constexpr const char* kNoLimit = "no limit met";

std::string number(double n) {
  char text[32];
  std::snprintf(text, sizeof text, n >= 10 ? "%.0f" : "%.2g", n);
  return text;
}

// As people say it: "60 s", without what we add for requests that differ on their way.
std::string length_words(Duration length) {
  const Duration bare = pace::without_slack(length);
  if (bare > 2min) return format_duration(bare);
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", pace::seconds(bare));
  return text;
}

std::string limit_words(const PaceMemory& learned) {
  switch (learned.model) {
    case PaceModel::none: return learned.cap == 0 ? kNoLimit : "";
    case PaceModel::told:
      if (learned.rate == 0) return "as its headers tell";
      [[fallthrough]];
    case PaceModel::bucket: {
      const bool slow = learned.rate < 1;
      return "about " + number(slow ? learned.rate * 60 : learned.rate) +
             (slow ? " per minute" : " per second") +
             (learned.model == PaceModel::told ? ", as its headers tell" : "");
    }
    case PaceModel::window:
      return "about " + std::to_string(learned.count) + " per " + length_words(learned.length);
  }
  return "";
}

}  // namespace

Duration usual_delay(const PaceMemory& learned) {
  if (learned.delay > Duration(0)) return learned.delay;
  if (learned.model == PaceModel::window && learned.count > 0)
    return learned.length / learned.count;
  const bool paced = learned.model == PaceModel::told || learned.model == PaceModel::bucket;
  return paced && learned.rate > 0 ? pace::from_seconds(1 / learned.rate) : Duration(0);
}

namespace {

std::string words(const Rules& rules, const PaceMemory& learned) {
  std::string text;
  if (rules.pace.adapt == Adapt::linear) {
    text = "a delay of " + format_duration(rules.pace.min_delay + learned.delay);
  } else {
    text = limit_words(learned);
    if (learned.cap > 0) {
      text += (text.empty() ? "at most " : ", at most ") + std::to_string(learned.cap) + " at once";
    }
  }
  if (learned.refusals > 0) {
    text += ", from " + std::to_string(learned.refusals) +
            (learned.refusals == 1 ? " refusal" : " refusals");
  }
  return text;
}

// By the policy's own number; empty: another one, if any, holds up.
std::string full_words(const Rules& rules, const PaceFlight& flight) {
  const std::uint32_t most = rules.pace.max_concurrency;
  if (most == 0 || flight.in_flight < most) return "";
  std::string text =
      most == 1 ? "the only place of pace.max_concurrency is taken"
                : "all " + std::to_string(most) + " places of pace.max_concurrency are taken";
  if (flight.tunnels == 0) return text + "; the next is free after an answer";
  if (most > 1) text += ", " + std::to_string(flight.tunnels);
  text += flight.tunnels == 1 ? " by an open tunnel" : " by open tunnels";
  return text + "; the next is free after " +
         (flight.tunnels < flight.in_flight ? "an answer or " : "") + "the end of a tunnel";
}

std::string why_words(const Outcome& outcome) {
  std::string text = outcome.kind == OutcomeKind::rate_limited ? "it refused"
                     : outcome.kind == OutcomeKind::anti_bot   ? "it blocked"
                                                               : "it admitted";
  if (outcome.status > 0) text += " with " + std::to_string(outcome.status);
  if (outcome.wait) text += " for " + format_duration(*outcome.wait);
  return text;
}

}  // namespace

std::string pace_change_sentence(const Rules& rules, const PaceMemory& before,
                                 const PaceMemory& after, const Outcome& why) {
  return words(rules, after) + "; before: " + words(rules, before) + "; because " + why_words(why);
}

std::string pace_sentence(const Rules& rules, const PaceState& state, Instant now) {
  const std::string text = words(rules, state.learned);
  const Instant opens = pace_opens(rules, state, now);
  if (opens <= now) return text;
  const std::string full = full_words(rules, state.flight);
  if (!full.empty()) return (text == kNoLimit ? "" : text + "; ") + full;
  if (opens == Instant::max()) return text + "; next slot after an answer";
  return text + "; next slot in " + format_duration(opens - now);
}

}  // namespace sluice
