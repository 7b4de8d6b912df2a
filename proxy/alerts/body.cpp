#include "proxy/alerts/body.h"

#include <unistd.h>

#include <climits>

#include "policy/sentence.h"
#include "proxy/admin/json.h"

namespace sluice {
namespace {

// https://api.slack.com/reference/surfaces/formatting#escaping. What is left of an "@channel" or
// "@everyone" in an origin's or a client's words must not wake anybody, in any chat.
std::string for_chat(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '@': out += "@\u200b"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

AlertFields alert_fields(const AlertMessage& message, const std::string& machine, UtcTime now) {
  AlertFields out;
  out.text = alert_text(message, machine, now);
  if (message.alerts.size() == 1 && message.more == 0) {
    const Alert& alert = message.alerts.front();
    out.kind = alert_word(alert.kind);
    out.key = alert.key;
    out.sentence = alert.sentence;
    out.at = iso_time(alert.at);
    out.count = alert.count;
    return out;
  }
  out.kind = "several";
  out.count = message.more;
  for (const Alert& alert : message.alerts) out.count += alert.count;
  out.sentence = std::to_string(message.alerts.size() + message.more) + " more alerts";
  out.at = iso_time(now);
  return out;
}

std::string alert_body(const AlertMessage& message, const std::string& machine, UtcTime now,
                       BodyFor reader) {
  const AlertFields fields = alert_fields(message, machine, now);
  Json out;
  out["text"] = reader == BodyFor::chat ? for_chat(fields.text) : fields.text;
  Json& own = out["sluice"];
  own["kind"] = fields.kind;
  own["key"] = fields.key;
  own["sentence"] = fields.sentence;
  own["at"] = fields.at;
  own["host"] = machine;
  own["count"] = fields.count;
  if (message.alerts.size() != 1 || message.more > 0) {
    own["alerts"] = Json::array();
    for (const Alert& alert : message.alerts) {
      own["alerts"].push_back({{"kind", alert_word(alert.kind)},
                               {"key", alert.key},
                               {"sentence", alert.sentence},
                               {"at", iso_time(alert.at)},
                               {"count", alert.count}});
    }
    own["more"] = message.more;
  }
  return text_of(out);
}

std::string machine_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

}  // namespace sluice
