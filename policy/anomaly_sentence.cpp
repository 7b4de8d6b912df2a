#include "policy/anomaly_sentence.h"

#include <algorithm>

#include "policy/units.h"

namespace sluice {
namespace {

constexpr std::size_t kLongestName = 100;
// Tokens in paths are longer: those of Slack have 24 characters, of Telegram 45.
constexpr std::size_t kLongestSegment = 19;

std::string times(std::uint64_t count) {
  return count == 1 ? "once" : std::to_string(count) + " times";
}

std::string requests(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " request" : " requests");
}

// What was seen, after "KEY ".
std::string seen(const AnomalyRules& rules, const OngoingAnomaly& anomaly) {
  const std::string number = std::to_string(anomaly.number);
  switch (anomaly.kind) {
    case AnomalyKind::burst:
      return "gets a burst: " + number + " requests in a minute, " +
             (anomaly.usual == 0 ? "where hardly any"
                                 : "where at most " + std::to_string(anomaly.usual)) +
             " are usual";
    case AnomalyKind::thrash:
      return "is asked for one URL over and over, " + times(anomaly.number) + " in " +
             format_duration(rules.thrash.within) +
             (anomaly.what.empty() ? "" : ": " + anomaly.what);
    case AnomalyKind::error_spike:
      return "fails: " + number + " of the last " + std::to_string(rules.error_spike.of) +
             " answers were errors";
    case AnomalyKind::off_hours: break;
  }
  return "is used outside of " + in_words(rules.off_hours.hours);
}

std::string advice(AnomalyKind kind) {
  switch (kind) {
    case AnomalyKind::burst: return "find what has begun to send";
    case AnomalyKind::thrash: return "look for a loop in its client";
    case AnomalyKind::error_spike: return "look at what it answers";
    case AnomalyKind::off_hours: break;
  }
  return "see whether somebody watches this run";
}

// What is done about it now, and how to do the other thing.
std::string done(std::string_view key, const AnomalyRules& rules, AnomalyAction action) {
  const std::string name(key);
  switch (action) {
    case AnomalyAction::alert: return "or shut it: sluice open " + name + " --for 10m";
    case AnomalyAction::throttle: return "it gets half its pace while this lasts";
    case AnomalyAction::open: break;
  }
  return "it is shut for " + format_duration(rules.open_for) +
         ", longer if this goes on; sluice close " + name + " lifts that";
}

}  // namespace

std::string anomaly_sentence(std::string_view key, const AnomalyRules& rules,
                             const AnomalyNews& news) {
  const OngoingAnomaly& anomaly = news.anomaly;
  std::string text(key);
  const std::string lasted = format_duration(news.at - anomaly.since);
  switch (news.what) {
    case AnomalyNews::What::began:
      text += " " + seen(rules, anomaly) + "; " + advice(anomaly.kind);
      break;
    case AnomalyNews::What::escalated:
      text += " " + seen(rules, anomaly) + "; this has lasted for " + lasted;
      break;
    case AnomalyNews::What::lasts:
      text += " " + seen(rules, anomaly) + "; this has lasted for " + lasted +
              " and goes on: " + advice(anomaly.kind);
      break;
    case AnomalyNews::What::pardoned:
      return text + " " + seen(rules, anomaly) +
             "; an operator has closed it, so this is only watched";
    case AnomalyNews::What::ended:
      return text + ": " + std::string(anomaly_word(anomaly.kind)) + " is over after " + lasted +
             " and " + requests(anomaly.requests) + " that showed it";
  }
  return text + (anomaly.action == AnomalyAction::alert ? ", " : "; ") +
         done(key, rules, anomaly.action);
}

std::string open_reason(const AnomalyRules& rules, const OngoingAnomaly& anomaly) {
  return std::string(anomaly_word(anomaly.kind)) + ": it " + seen(rules, anomaly);
}

std::string request_name(std::string_view method, std::string_view path) {
  std::string out = std::string(method.substr(0, kLongestSegment)) + " ";
  const std::size_t query = path.find('?');
  std::string_view rest = path.substr(0, query);
  while (!rest.empty() && out.size() < kLongestName) {
    const std::size_t slash = rest.find('/', 1);
    const std::string_view segment = rest.substr(0, slash);
    out += segment.size() > kLongestSegment + 1 ? "/…" : std::string(segment);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
  }
  if (!rest.empty()) out += "/…";
  if (query != std::string_view::npos) out += "?…";
  return out;
}

}  // namespace sluice
