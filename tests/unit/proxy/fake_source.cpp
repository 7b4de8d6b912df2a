#include "unit/proxy/fake_source.h"

#include "policy/sentence.h"
#include "policy/units.h"
#include "proxy/clock.h"

namespace sluice::testing {
namespace {

// A repeatable traffic for charts: some keys are busy, some have bursts, most are quiet.
void let_it_run(KeyDetail& detail, std::uint64_t turn) {
  std::uint64_t seed = std::hash<std::string>{}(detail.row.key);
  const std::uint64_t weight = 1 + seed % 97;
  seed = (seed ^ turn * 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
  seed ^= seed >> 29;
  Counts& counts = detail.row.counts;
  const std::uint64_t wave = 4 + (turn % 24 < 12 ? turn % 12 : 12 - turn % 12);
  if (detail.row.phase == Phase::open) {
    counts.refused += seed % (weight / 4 + 1);
    return;
  }
  counts.success += weight * wave / 6 + seed % (weight + 1);
  counts.rate_limited += seed % 23 == 0 ? seed % 5 : 0;
  counts.refused += seed % 17 == 0 ? seed % (weight / 3 + 1) : 0;
}

}  // namespace

KeyDetail closed_key(std::string key, std::uint64_t requests) {
  KeyDetail detail;
  detail.sentence = key + " lets requests through";
  detail.row.key = std::move(key);
  detail.row.policy = "default";
  detail.row.counts.success = requests;
  return detail;
}

KeyDetail shut_key(const std::string& key, Duration left, std::uint16_t status, std::string said) {
  KeyDetail detail = closed_key(key, 100);
  const UtcTime now = utc_now();
  detail.row.phase = Phase::open;
  detail.row.cause = Cause::named_time;
  detail.row.until = now + left;
  detail.row.level = 1;
  detail.row.counts.rate_limited = 3;
  detail.row.counts.trips = 1;
  detail.status = status;
  detail.opened_at = now;
  detail.sentence = key + " is cooling down after " + status_name(status) + ": " +
                    format_duration(left) + " left, until " + clock_time(detail.row.until, now);
  detail.said = std::move(said);
  return detail;
}

void FakeSource::tell(EventKind kind, std::string key, std::string text) {
  const std::lock_guard guard(mutex_);
  const std::uint64_t next = state_.events.empty() ? 1 : state_.events.back().sequence + 1;
  state_.events.push_back({next, {utc_now(), kind, std::move(key), std::move(text)}});
}

Readiness FakeSource::readiness() {
  return with([](State& state) { return state.readiness; });
}

Totals FakeSource::totals() {
  return with([](State& state) {
    if (!state.busy) return state.totals;
    Totals totals = state.totals;
    for (const auto& [key, detail] : state.keys) {
      totals.outcomes.success += detail.row.counts.success;
      totals.outcomes.rate_limited += detail.row.counts.rate_limited;
      totals.outcomes.refused += detail.row.counts.refused;
    }
    return totals;
  });
}

Result<KeyPage> FakeSource::keys(std::string_view after, std::size_t limit) {
  return with([&](State& state) -> Result<KeyPage> {
    if (!state.failing.empty()) return Error{state.failing};
    ++state.pages_read;
    KeyPage page;
    auto at = after.empty() ? state.keys.begin() : state.keys.upper_bound(after);
    for (; at != state.keys.end() && page.keys.size() < limit; ++at) {
      if (state.busy) let_it_run(at->second, state.pages_read);
      page.keys.push_back(at->second.row);
    }
    page.more = at != state.keys.end();
    return page;
  });
}

std::optional<KeyDetail> FakeSource::key(std::string_view key) {
  return with([&](State& state) -> std::optional<KeyDetail> {
    const auto at = state.keys.find(key);
    if (at == state.keys.end()) return std::nullopt;
    return at->second;
  });
}

Budget FakeSource::budget() {
  return with([](State& state) { return state.budget; });
}
std::vector<Anomaly> FakeSource::anomalies() {
  return with([](State& state) { return state.anomalies; });
}
std::vector<Job> FakeSource::jobs() {
  return with([](State& state) { return state.jobs; });
}
std::vector<PolicyProblem> FakeSource::policy_problems() {
  return with([](State& state) { return state.policy_problems; });
}
Health FakeSource::store_health() {
  return with([](State& state) { return state.health; });
}

Result<std::vector<StoredEvent>> FakeSource::events(std::uint64_t after, std::size_t limit) {
  return with([&](State& state) -> Result<std::vector<StoredEvent>> {
    std::vector<StoredEvent> out;
    for (const StoredEvent& event : state.events)
      if (event.sequence > after && out.size() < limit) out.push_back(event);
    return out;
  });
}

Result<std::string> FakeSource::ordered(std::string order, std::string key, std::string said) {
  const bool fails = with([&](State& state) {
    state.orders.push_back(std::move(order));
    return !state.failing.empty();
  });
  if (fails) return Error{with([](State& state) { return state.failing; })};
  tell(EventKind::operator_act, std::move(key), said);
  return said;
}

void FakeSource::open(std::string key, Duration length, std::string reason, Done done) {
  const std::string how = format_duration(length);
  with([&](State& state) {
    KeyDetail detail = shut_key(key, length, 0, "");
    detail.row.cause = Cause::operator_act;
    detail.sentence = key + " is cooling down after an operator shut it (" + reason + ")";
    detail.reason = reason;
    if (state.failing.empty()) state.keys[key] = std::move(detail);
  });
  std::string order = "open " + key;
  order.append(" ").append(how).append(" ").append(reason);
  done(ordered(std::move(order), key, key + " is shut for " + how + " by an operator"));
}

void FakeSource::close(std::string key, Done done) {
  with([&](State& state) {
    if (state.failing.empty()) state.keys[key] = closed_key(key, 100);
  });
  done(ordered("close " + key, key, key + " lets requests through again, by an operator"));
}

void FakeSource::stop(std::string reason, Done done) {
  with([&](State& state) { state.totals.stop = {true, reason, utc_now()}; });
  done(ordered("stop " + reason, "", "everything is stopped by an operator: " + reason));
}

void FakeSource::resume(Done done) {
  with([](State& state) { state.totals.stop = {}; });
  done(ordered("resume", "", "the emergency stop is over, by an operator"));
}

void FakeSource::test_alert(Done done) {
  done(ordered("test alert", "", "a test alert is on its way"));
}

}  // namespace sluice::testing
