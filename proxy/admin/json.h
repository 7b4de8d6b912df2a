// What a source says, as the JSON of docs/ADMIN.md. Pure. Origin-controlled text goes in as it is:
// JSON needs no more than its own escapes, and the page writes text only as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "proxy/admin/history.h"
#include "proxy/admin/source.h"

namespace sluice {

using Json = nlohmann::ordered_json;

std::string iso_time_ms(UtcTime time);  // "2026-03-12T12:00:00.000Z"

Json key_json(const KeyDetail& key, UtcTime now);
Json series_json(const History::Series& series);
Json counts_json(const Counts& counts);
Json budget_json(const Budget& budget);
Json anomaly_json(const Anomaly& anomaly);
Json job_json(const Job& job);
Json event_json(const StoredEvent& stored);
Json stop_json(const StopState& stop);

// One line; bytes that are not UTF-8 are replaced.
std::string text_of(const Json& json);

}  // namespace sluice
