#include "proxy/config_anomaly.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "proxy/zone_file.h"

namespace sluice {
namespace {

const std::vector<std::pair<std::string_view, AnomalyAction>> kActions = {
    {"alert", AnomalyAction::alert},
    {"throttle", AnomalyAction::throttle},
    {"open", AnomalyAction::open},
};

void read_anomaly_kind(const TomlTable& table, AnomalyRules::Kind& kind) {
  table.read("enabled", kind.enabled);
  std::vector<std::pair<std::string_view, std::optional<AnomalyAction>>> choices = {
      {"inherit", std::nullopt}};
  for (const auto& [word, action] : kActions) choices.emplace_back(word, action);
  table.read_choice("action", kind.action, choices);
}

void read_hours(const TomlTable& off_hours, WorkingHours& hours) {
  std::vector<std::string> written;
  std::vector<HourRange> ranges;
  off_hours.read("hours", written, [&](std::string_view text) -> std::string {
    const auto range = parse_hour_range(text);
    if (!range) return range.error();
    ranges.push_back(*range);
    return {};
  });
  if (off_hours.has("hours")) hours.ranges = std::move(ranges);

  std::uint8_t days = 0;
  off_hours.read("days", written, [&](std::string_view text) -> std::string {
    const auto* day = std::find(std::begin(kDayNames), std::end(kDayNames), text);
    if (day == std::end(kDayNames)) {
      return "\"" + std::string(text) + "\" is no day: mon, tue, wed, thu, fri, sat and sun are";
    }
    days = static_cast<std::uint8_t>(days | 1u << (day - std::begin(kDayNames)));
    return {};
  });
  if (off_hours.has("days")) hours.days = days;

  off_hours.read("zone", hours.zone);
  if (const auto zone = load_zone(hours.zone); !zone) {
    off_hours.complain("zone", "anomaly.off_hours.zone: " + zone.error());
  }
}

}  // namespace

void read_anomaly(const TomlTable& anomaly, AnomalyRules& rules) {
  anomaly.read("enabled", rules.enabled);
  anomaly.read_choice("action", rules.action, kActions);
  anomaly.read("escalate_after", rules.escalate_after);
  anomaly.read("end_after", rules.end_after, 1s);
  anomaly.read("open_for", rules.open_for, 10s);

  const TomlTable burst = anomaly.table("burst");
  read_anomaly_kind(burst, rules.burst);
  burst.read_count("above", rules.burst.above, 1u, 1'000'000u);
  burst.read("times", rules.burst.times, 1.0, 1000.0);
  burst.read("learn", rules.burst.learn);

  const TomlTable thrash = anomaly.table("thrash");
  read_anomaly_kind(thrash, rules.thrash);
  thrash.read_count("above", rules.thrash.above, 1u, 1000u);
  thrash.read("within", rules.thrash.within, 1s);

  const TomlTable error_spike = anomaly.table("error_spike");
  read_anomaly_kind(error_spike, rules.error_spike);
  error_spike.read("share", rules.error_spike.share, 0.0, 1.0);
  error_spike.read_count("of", rules.error_spike.of, 2u, 64u);

  const TomlTable off_hours = anomaly.table("off_hours");
  read_anomaly_kind(off_hours, rules.off_hours);
  read_hours(off_hours, rules.off_hours.hours);
}

}  // namespace sluice
