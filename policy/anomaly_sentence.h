// What is said about an anomaly, in the log, the events, alerts, the command line and the admin
// page: which key, what was seen, what is done, what to do. Only words.
#pragma once

#include <string>
#include <string_view>

#include "policy/anomaly.h"

namespace sluice {

// "api.test is asked for one URL over and over, 4 times in 5 min: GET /v1/events; look for a loop
// in its client, or shut it: sluice open api.test --for 10m". Without a full stop.
std::string anomaly_sentence(std::string_view key, const AnomalyRules& rules,
                             const AnomalyNews& news);

// Why the key was opened, as it stands in what is said about the key.
std::string open_reason(const AnomalyRules& rules, const OngoingAnomaly& anomaly);

// "GET /v1/events?…", safe to show: the query and long segments may be secrets, and stay out.
std::string request_name(std::string_view method, std::string_view path);

}  // namespace sluice
