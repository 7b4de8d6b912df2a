// An alert as JSON: Slack's format, which Mattermost and Discord (at /slack) read as well, with the
// same in fields of its own for programs. Pure; hostile text in an alert stays text.
#pragma once

#include <string>

#include "policy/alert.h"

namespace sluice {

// The parts of a message as one value each, also when it is several alerts.
struct AlertFields {
  std::string kind, key, sentence, at, text;  // at: ISO 8601
  std::uint64_t count = 0;
};
AlertFields alert_fields(const AlertMessage& message, const std::string& machine, UtcTime now);

// For people in a chat (Slack's escapes in `text`), or for a program.
enum class BodyFor { chat, program };
std::string alert_body(const AlertMessage& message, const std::string& machine, UtcTime now,
                       BodyFor reader);

// The name of this machine, as messages show it.
std::string machine_name();

}  // namespace sluice
