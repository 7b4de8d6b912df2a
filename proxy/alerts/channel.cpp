#include "proxy/alerts/channel.h"

#include <spdlog/spdlog.h>

#include <random>
#include <utility>

#include "policy/units.h"
#include "proxy/alerts/event_alert.h"
#include "proxy/clock.h"
#include "store/alert_record.h"
#include "store/blocking.h"

namespace sluice {
namespace {

constexpr std::size_t kEventsAtOnce = 500;
constexpr unsigned kLogEvery = 15;  // failures in a row: about every five minutes

double random_share() {
  static thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_real_distribution<double>(0.0, 1.0)(random);
}

}  // namespace

bool AlertChannel::load(const ClockPair& now, UtcTime started) {
  auto stored = load_outbox(store_, receiver_->name(), now);
  if (!stored) return false;
  if (!*stored) {
    const auto last = last_event_before(started);
    if (!last) return false;
    stored->emplace().cursor = *last;
  }
  const Outbox mine = std::exchange(box_, std::move(**stored));
  for (const Outbox::Waiting& waiting : mine.waiting) {
    sluice::take(rules_, box_, waiting.alert, waiting.since);
  }
  save(now);
  return true;
}

void AlertChannel::forget() { box_ = {}; }

Result<std::uint64_t> AlertChannel::last_event_before(UtcTime started) {
  std::uint64_t last = 0;
  for (;;) {
    const auto page = store_.events(last, kEventsAtOnce);
    if (!page) return Error{page.error()};
    for (const StoredEvent& stored : *page) {
      if (stored.event.at >= started) return last;
      last = stored.sequence;
    }
    if (page->size() < kEventsAtOnce) return last;
  }
}

void AlertChannel::read_events(const ClockPair& now, const Wanted& wanted) {
  bool taken = false;
  std::uint64_t old = 0;
  for (;;) {
    const auto page = store_.events(box_.cursor, kEventsAtOnce);
    if (!page) break;
    for (const StoredEvent& stored : *page) {
      box_.cursor = stored.sequence;
      const auto alert = alert_of(stored.event);
      if (!alert || !wanted(*alert)) continue;
      if (now.utc - alert->at >= rules_.give_up) {
        ++old;
        continue;
      }
      sluice::take(rules_, box_, *alert, now.mono);
      taken = true;
    }
    if (page->size() < kEventsAtOnce) break;
  }
  if (old > 0) {
    spdlog::warn("alerts: {} from longer than {} ago are not told any more by {}", old,
                 format_duration(rules_.give_up), receiver_->name());
  }
  // A cursor that moved over nothing costs no write: it moves over the same again.
  if (taken || old > 0) save(now);
}

void AlertChannel::take(Alert alert, const ClockPair& now) {
  sluice::take(rules_, box_, std::move(alert), now.mono);
}

void AlertChannel::save(const ClockPair& now) {
  const auto saved = wait_for(
      [&](Completion done) { save_outbox(store_, receiver_->name(), box_, now, std::move(done)); },
      kStoreWait);
  if (!saved) spdlog::warn("alerts: what was told is not written down: {}", saved.error());
}

bool AlertChannel::deliver(const ClockPair& now, const std::function<bool()>& may_send,
                           const std::atomic<bool>& ending) {
  const auto message = due(rules_, box_, now.mono);
  if (!message || !may_send()) return false;
  const Delivery delivery = receiver_->deliver(*message, now.utc, ending);
  const ClockPair then = clock_now();
  switch (delivery.kind) {
    case Delivery::Kind::taken:
      delivered(rules_, box_, *message, then.mono);
      ++tally_.sent;
      if (!last_problem_.empty()) spdlog::info("alerts: {} takes them again", receiver_->name());
      last_problem_.clear();
      save(then);
      return true;
    case Delivery::Kind::later:
      if (!ending) not_taken(*message, delivery, then);
      return false;
    case Delivery::Kind::never:
      not_taken(*message, delivery, then);
      discard(rules_, box_, *message, then.mono);
      complain(*message, delivery.problem, then);
      return true;
  }
  return false;
}

void AlertChannel::not_taken(const AlertMessage& message, const Delivery& delivery,
                             const ClockPair& now) {
  ++tally_.failed;
  last_problem_ = delivery.problem;
  if (box_.tries % kLogEvery == 0) {
    spdlog::warn("alerts: {} did not take {} of them, it will be tried again: {}",
                 receiver_->name(), message.alerts.size() + message.more, delivery.problem);
  }
  put_off(box_, now.mono, delivery.asked, random_share());
}

void AlertChannel::give_up(const ClockPair& now) {
  const auto dropped = sluice::give_up(rules_, box_, now.mono);
  if (!dropped) return;
  const std::string why = last_problem_.empty() ? "" : ": " + last_problem_;
  complain(*dropped, "nobody took it for " + format_duration(rules_.give_up) + why, now);
}

void AlertChannel::complain(const AlertMessage& dropped, const std::string& why,
                            const ClockPair& now) {
  const auto say = [&](const std::string& key, const std::string& what) {
    const std::string text =
        "alert NOT delivered by " + receiver_->name() + ": " + what + " (" + why + ")";
    spdlog::error("{}", text);
    store_.append({now.utc, EventKind::alert, key, text}, {});
  };
  for (const Alert& alert : dropped.alerts) say(alert.key, alert.sentence);
  if (dropped.more > 0) say("", "and " + std::to_string(dropped.more) + " more");
  tally_.dropped += dropped.alerts.size() + dropped.more;
  save(now);
}

}  // namespace sluice
