#include "policy/alert_outbox.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

constexpr Duration kFirstRetry = 1s;
constexpr Duration kLongestRetry = 20s;  // well below the 30 s within which alerts are promised
constexpr Duration kLongestAsked = 15min;

// A budget has several marks, a key several anomalies: there the words tell one from the other,
// while their numbers change all the time. A key that opens again is no news, whatever the cause.
bool words_matter(AlertKind kind) {
  return kind == AlertKind::budget || kind == AlertKind::anomaly || kind == AlertKind::store;
}

// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/): the same in every process.
std::uint64_t name_of(const Alert& alert) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u; };
  add(static_cast<char>(alert.kind));
  for (const char c : alert.key) add(c);
  if (!words_matter(alert.kind)) return hash;
  add('\n');
  for (const char c : alert.sentence) {
    if (c < '0' || c > '9') add(c);
  }
  return hash;
}

bool same(const Alert& a, const Alert& b) { return name_of(a) == name_of(b); }

bool told_lately(const AlertRules& rules, const Outbox& box, const Alert& alert, Instant now) {
  const std::uint64_t name = name_of(alert);
  return std::any_of(box.told.begin(), box.told.end(), [&](const Outbox::Told& told) {
    return told.name == name && now - told.at < rules.repeat;
  });
}

// Messages that count against the burst at this moment.
double spent(const AlertRules& rules, const Outbox& box, Instant now) {
  const double hours = std::chrono::duration<double, std::ratio<3600>>(now - box.spent_at).count();
  return std::max(0.0, box.spent - hours * rules.per_hour);
}

void remember(const AlertRules& rules, Outbox& box, const AlertMessage& message, Instant now) {
  std::erase_if(box.told, [&](const Outbox::Told& told) { return now - told.at >= rules.repeat; });
  for (const Alert& alert : message.alerts) box.told.push_back({name_of(alert), now});
  if (box.told.size() > Outbox::max_told) {
    box.told.erase(box.told.begin(), box.told.end() - Outbox::max_told);
  }
}

// What the message said is no longer waiting; what came since is.
void take_out(Outbox& box, const AlertMessage& message) {
  for (const Alert& alert : message.alerts) {
    std::erase_if(box.waiting,
                  [&](const Outbox::Waiting& waiting) { return same(waiting.alert, alert); });
  }
  box.more -= std::min(box.more, message.more);
}

bool is_rated(const AlertMessage& message) {
  return message.alerts.size() != 1 || !is_urgent(message.alerts.front().kind);
}

}  // namespace

void take(const AlertRules& rules, Outbox& box, Alert alert, Instant now) {
  alert.key.resize(std::min(alert.key.size(), Alert::max_key));
  alert.sentence.resize(std::min(alert.sentence.size(), Alert::max_sentence));
  for (Outbox::Waiting& waiting : box.waiting) {
    if (!same(waiting.alert, alert)) continue;
    alert.count += waiting.alert.count;
    waiting.alert = std::move(alert);
    return;
  }
  if (box.waiting.size() < rules.most_waiting) {
    box.waiting.push_back({std::move(alert), now});
    return;
  }
  // What matters most pushes out what does not.
  const auto other =
      std::find_if(box.waiting.rbegin(), box.waiting.rend(),
                   [](const Outbox::Waiting& waiting) { return !is_urgent(waiting.alert.kind); });
  if (box.more == 0) box.more_since = now;
  if (!is_urgent(alert.kind) || other == box.waiting.rend()) {
    box.more += alert.count;
    return;
  }
  box.more += other->alert.count;
  *other = {std::move(alert), now};
}

std::optional<AlertMessage> due(const AlertRules& rules, const Outbox& box, Instant now) {
  if (now < box.next_try) return std::nullopt;
  AlertMessage all{{}, box.more};
  for (const Outbox::Waiting& waiting : box.waiting) {
    if (told_lately(rules, box, waiting.alert, now)) continue;
    if (is_urgent(waiting.alert.kind)) return AlertMessage{{waiting.alert}, 0};
    all.alerts.push_back(waiting.alert);
  }
  if (all.alerts.empty() && all.more == 0) return std::nullopt;
  const double left = rules.burst - spent(rules, box, now);
  if (left < 1) return std::nullopt;
  // The last one of a burst says all that is left.
  if (left < 2 || all.alerts.empty()) return all;
  return AlertMessage{{all.alerts.front()}, 0};
}

void delivered(const AlertRules& rules, Outbox& box, const AlertMessage& message, Instant now) {
  discard(rules, box, message, now);
  if (is_rated(message)) {
    box.spent = spent(rules, box, now) + 1;
    box.spent_at = now;
  }
}

void put_off(Outbox& box, Instant now, Duration asked, double jitter) {
  const unsigned doublings = std::min(box.tries, 10u);
  const Duration ours = std::min(kLongestRetry, kFirstRetry * (1 << doublings));
  // Shorter at random, so that many proxies do not come back together.
  const auto wait = std::chrono::duration_cast<Duration>(ours * (1 - 0.5 * jitter));
  box.next_try = now + std::max(wait, std::min(asked, kLongestAsked));
  ++box.tries;
}

void discard(const AlertRules& rules, Outbox& box, const AlertMessage& message, Instant now) {
  take_out(box, message);
  remember(rules, box, message, now);
  box.tries = 0;
  box.next_try = Instant{};
}

std::optional<AlertMessage> give_up(const AlertRules& rules, Outbox& box, Instant now) {
  AlertMessage dropped;
  std::erase_if(box.waiting, [&](const Outbox::Waiting& waiting) {
    if (now - waiting.since < rules.give_up) return false;
    dropped.alerts.push_back(waiting.alert);
    return true;
  });
  if (box.more > 0 && now - box.more_since >= rules.give_up) {
    dropped.more = std::exchange(box.more, 0);
  }
  if (dropped.alerts.empty() && dropped.more == 0) return std::nullopt;
  return dropped;
}

std::uint64_t waiting_count(const Outbox& box) { return box.waiting.size() + box.more; }

}  // namespace sluice
