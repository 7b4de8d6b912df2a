#include "proxy/cli/key_json.h"

#include "policy/breaker.h"
#include "policy/sentence.h"

namespace sluice {
namespace {

// null: never.
nlohmann::json time_json(Instant at, const ClockPair& now) {
  if (at == Instant{}) return nullptr;
  return iso_time(now.utc + (at - now.mono));
}

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

nlohmann::json counts_json(const Counts& counts) {
  return {{"success", counts.success},
          {"neutral", counts.neutral},
          {"rate_limited", counts.rate_limited},
          {"anti_bot", counts.anti_bot},
          {"server_error", counts.server_error},
          {"network", counts.network},
          {"local", counts.local},
          {"refused", counts.refused},
          {"trips", counts.trips},
          {"junk", counts.junk}};
}

}  // namespace

nlohmann::json key_json(const KnownKey& known, const Rules& rules, const ClockPair& now) {
  if (!known.state) return {{"key", known.key}, {"state", "unreadable"}};
  const HostState state = decayed(rules, *known.state, now.mono);
  const Phase phase = phase_at(state, now.mono);
  return {{"key", known.key},
          {"state", phase_word(phase)},
          {"cause", cause_word(state.cause)},
          {"reason", shut_by(state)},
          {"status", state.status},
          {"said", state.said},
          {"left_s", phase == Phase::open ? seconds(state.until - now.mono) : 0.0},
          {"until", phase == Phase::open ? time_json(state.until, now) : nlohmann::json(nullptr)},
          {"opened_at", time_json(state.opened_at, now)},
          {"closed_at", time_json(state.closed_at, now)},
          {"level", state.level},
          {"antibot_level", state.antibot_level},
          {"probes", state.leases.size()},
          {"delay_s", seconds(usual_delay(state.pace))},
          {"counts", counts_json(state.counts)},
          {"sentence", sentence(known.key, state, now.mono, now.utc)}};
}

nlohmann::json noted_json(const NotedAnomaly& noted) {
  return {{"kind", anomaly_word(noted.kind)},
          {"key", noted.key},
          {"action", action_word(noted.action)},
          {"since", iso_time(noted.since)},
          {"sentence", noted.sentence}};
}

std::string to_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sluice
