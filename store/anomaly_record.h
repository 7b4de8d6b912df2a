// The anomalies that go on, as one process last wrote them down, for commands that ask without the
// daemon. Each process has a record of its own, which ends by itself when it is not renewed: what a
// crash leaves behind is soon nobody's word.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/anomaly.h"
#include "store/clock_pair.h"
#include "store/store.h"

namespace sluice {

inline constexpr std::string_view kAnomalyPrefix = "anomaly/";
inline constexpr Duration kAnomaliesHold = 3min;  // without being renewed

struct NotedAnomaly {
  AnomalyKind kind = AnomalyKind::burst;
  AnomalyAction action = AnomalyAction::alert;
  std::string key, sentence;
  UtcTime since{};
  std::optional<UtcTime> ended{};  // never, in a record
  bool operator==(const NotedAnomaly&) const = default;
};

// As many of them as fit into one value; erases the record when there are none.
void save_anomalies(Store& store, std::string_view process, const std::vector<NotedAnomaly>& noted,
                    const ClockPair& now, Completion done);

// Of all processes, in order of their keys.
Result<std::vector<NotedAnomaly>> load_anomalies(Store& store, const ClockPair& now);

bool anomalies_are_over(std::string_view bytes, const ClockPair& now);

}  // namespace sluice
