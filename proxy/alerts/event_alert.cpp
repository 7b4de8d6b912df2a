#include "proxy/alerts/event_alert.h"

namespace sluice {
namespace {

std::optional<AlertKind> kind_of(const Event& event) {
  const bool begins = event.mark == EventMark::begins, ends = event.mark == EventMark::ends;
  switch (event.kind) {
    case EventKind::transition:
      if (begins) return AlertKind::breaker_open;
      return std::nullopt;
    case EventKind::operator_act:
      if (begins) return AlertKind::stop;
      if (ends) return AlertKind::resume;
      return std::nullopt;
    case EventKind::alert:
      if (event.mark == EventMark::lasts) return AlertKind::slow_open;
      if (begins) return AlertKind::test;
      return std::nullopt;  // our own complaint that nobody took one
    case EventKind::store: return ends ? AlertKind::store_recovered : AlertKind::store;
    case EventKind::anomaly: return AlertKind::anomaly;
    case EventKind::budget: return AlertKind::budget;
    case EventKind::policy: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Alert> alert_of(const Event& event) {
  const auto kind = kind_of(event);
  if (!kind) return std::nullopt;
  return Alert{*kind, event.key, event.text, event.at, 1};
}

}  // namespace sluice
