// Something a person must hear of now, and the words it is told in. Only values: what happened is
// said by others, when it is told by alert_outbox.h, and how it travels by proxy/alerts/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/time.h"

namespace sluice {

// Values are on disk: never renumber.
enum class AlertKind : std::uint8_t {
  breaker_open = 0,
  slow_open = 1,  // still open after `slow_open`
  budget = 2,
  anomaly = 3,
  stop = 4,
  resume = 5,
  store = 6,
  store_recovered = 7,
  test = 8,
};
inline constexpr std::size_t kAlertKinds = 9;

struct Alert {
  static constexpr std::size_t max_key = 300;
  static constexpr std::size_t max_sentence = 600;

  AlertKind kind = AlertKind::test;
  std::string key;  // what it is about; empty: everything
  std::string sentence;
  UtcTime at{};             // the last time
  std::uint32_t count = 1;  // how often, since it was last told

  bool operator==(const Alert&) const = default;
};

// What is sent at once: one alert, or several that were too many to be told one by one.
struct AlertMessage {
  std::vector<Alert> alerts;
  std::uint64_t more = 0;  // of which nothing but their number is known

  bool operator==(const AlertMessage&) const = default;
};

// "breaker-open", "slow-open", …: for settings and programs.
std::string_view alert_word(AlertKind kind);

// The word in `alerts.kinds` that switches it: a resume goes with "stop", and so on. Empty for a
// test, which cannot be switched off.
std::string_view alert_switch(AlertKind kind);

// Too rare and too important to be held back by a rate limit.
bool is_urgent(AlertKind kind);

// One short text for people. `machine` is where Sluice runs. At most 1,900 bytes: Discord takes
// 2,000.
std::string alert_text(const AlertMessage& message, std::string_view machine, UtcTime now);

}  // namespace sluice
