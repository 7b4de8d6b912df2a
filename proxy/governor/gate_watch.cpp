// The part of a gate that looks for the unusual, and does something about it.
#include "policy/anomaly_sentence.h"
#include "policy/units.h"
#include "proxy/governor/anomaly_watch.h"
#include "proxy/governor/gate.h"

namespace sluice {
namespace {

constexpr Duration kAhead = 2s;  // before a shut key would let a probe through

bool is_error(OutcomeKind kind) {
  return kind == OutcomeKind::rate_limited || kind == OutcomeKind::anti_bot ||
         kind == OutcomeKind::server_error || kind == OutcomeKind::network;
}

}  // namespace

AnomalyAsk Gate::moment(Instant now) const {
  return {.now = now,
          .utc = watch_->utc(now),
          .working_hours = watch_->working_hours(),
          .watched_only = rules_ == nullptr || rules_->mode == Mode::observe};
}

void Gate::watch_ask(const AskedUrl& url, Asked::Kind kind, Instant now, Effects& out) {
  AnomalyAsk ask = moment(now);
  ask.refused = kind == Asked::Kind::refused || kind == Asked::Kind::queue_full;
  if (url.hash != 0 && (!ask.refused || unusual_.follows(url.hash))) {
    ask.url = url.hash;
    ask.times = watch_->count(url.hash, now);
    ask.what = url.name;
  }
  unusual_.asked(watch_->rules(), state_.usual, ask, out.anomalies);
  act_on_anomalies(now, out);
}

void Gate::watch_answer(const Outcome& outcome, Instant now, Effects& out) {
  if (outcome.kind == OutcomeKind::local) return;
  unusual_.answered(watch_->rules(), state_.usual, moment(now), is_error(outcome.kind),
                    out.anomalies);
  act_on_anomalies(now, out);
}

void Gate::tick_anomalies(Instant now, Effects& out) {
  const std::lock_guard guard(mutex_);
  if (watch_ == nullptr || unusual_.going_on().empty()) return;
  const bool was_slow = unusual_.spacing() > Duration(0);
  unusual_.tick(watch_->rules(), state_.usual, moment(now), out.anomalies);
  act_on_anomalies(now, out);
  if (was_slow && unusual_.spacing() == Duration(0) && waiting() > 0) wake_at(out, now);
  // What was shut for an anomaly stays so while that goes on, unless somebody has closed it.
  if (state_.cause != Cause::anomaly || phase_at(state_, now + kAhead) == Phase::open) return;
  if (state_.phase == Phase::closed) return;
  for (const OngoingAnomaly& anomaly : unusual_.going_on()) {
    if (anomaly.action == AnomalyAction::open) return shut(anomaly, now, out);
  }
}

void Gate::act_on_anomalies(Instant now, Effects& out) {
  for (const AnomalyNews& news : out.anomalies) {
    const bool ended = news.what == AnomalyNews::What::ended;
    if (!ended && news.anomaly.action == AnomalyAction::open) shut(news.anomaly, now, out);
  }
}

void Gate::shut(const OngoingAnomaly& anomaly, Instant now, Effects& out) {
  const AnomalyRules& rules = watch_->rules();
  const HostState before = state_;
  state_ = anomaly_open(std::move(state_), now, rules.open_for, open_reason(rules, anomaly));
  if (!tightens(before, state_)) return;
  note_transition(before, now, out);
  record_.tighten();
  save_soon(out);
}

std::string Gate::pace_text(Instant now) const {
  std::string text = pace_sentence(*rules_, pace_, now);
  if (unusual_.spacing() == Duration(0) || rules_->mode == Mode::observe) return text;
  text += text.empty() ? "" : "; ";
  return text + "half its pace for an anomaly, one request per " +
         format_duration(unusual_.spacing());
}

}  // namespace sluice
