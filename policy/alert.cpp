#include "policy/alert.h"

#include <array>

#include "policy/sentence.h"

namespace sluice {
namespace {

struct Words {
  std::string_view name, group;
  bool urgent;
};
// In the order of AlertKind.
constexpr std::array<Words, kAlertKinds> words = {{
    {"breaker-open", "breaker-open", false},
    {"slow-open", "slow-open", false},
    {"budget", "budget", true},
    {"anomaly", "anomaly", false},
    {"stop", "stop", true},
    {"resume", "stop", true},
    {"store", "store", true},
    {"store-recovered", "store", true},
    {"test", "", false},
}};

constexpr std::size_t kMaxText = 1900;
constexpr Duration kLate = 1min;  // then a "41 s left" needs the time it was said at

const Words& words_of(AlertKind kind) {
  return words[static_cast<std::size_t>(kind) % words.size()];
}

std::string one_line(const Alert& alert, UtcTime now) {
  std::string line = alert.sentence;
  if (alert.count > 1) line += " (" + std::to_string(alert.count) + " times)";
  if (now - alert.at > kLate) line += " [" + clock_time(alert.at, now) + "]";
  return line;
}

}  // namespace

std::string_view alert_word(AlertKind kind) { return words_of(kind).name; }
std::string_view alert_switch(AlertKind kind) { return words_of(kind).group; }
bool is_urgent(AlertKind kind) { return words_of(kind).urgent; }

std::string alert_text(const AlertMessage& message, std::string_view machine, UtcTime now) {
  std::string text = "sluice on " + std::string(machine) + ": ";
  if (message.alerts.size() == 1 && message.more == 0) {
    return (text + one_line(message.alerts.front(), now)).substr(0, kMaxText);
  }
  text += std::to_string(message.alerts.size() + message.more) + " more alerts";
  std::uint64_t unsaid = message.alerts.size() + message.more;
  for (const Alert& alert : message.alerts) {
    const std::string line = "\n- " + one_line(alert, now);
    constexpr std::size_t room_for_the_rest = 40;
    if (text.size() + line.size() + room_for_the_rest > kMaxText) break;
    text += line;
    --unsaid;
  }
  if (unsaid > 0 && unsaid < message.alerts.size() + message.more) {
    text += "\n- and " + std::to_string(unsaid) + " more";
  }
  return text;
}

}  // namespace sluice
