#include "proxy/governor/anomaly_watch.h"

#include <functional>

#include "policy/anomaly_sentence.h"

namespace sluice {
namespace {

// Of all shards: 4 MiB. As many different URLs within the time are told apart, before the rarest
// are forgotten.
constexpr std::size_t kUrls = 256 * 1024;

std::uint64_t hash(std::string_view text) { return std::hash<std::string_view>{}(text); }

// The finalizer of splitmix64: every bit of the sum depends on every bit of both.
std::uint64_t mixed(std::uint64_t sum, std::uint64_t more) {
  sum += more + 0x9e3779b97f4a7c15u;
  sum = (sum ^ sum >> 30) * 0xbf58476d1ce4e5b9u;
  sum = (sum ^ sum >> 27) * 0x94d049bb133111ebu;
  return sum ^ sum >> 31;
}

// What starts the same command again and again, such as a cron job, may be the loop.
std::string_view lasting_name(const Ask& ask) {
  return ask.job_numbered ? ask.job.substr(0, ask.job.rfind('-')) : ask.job;
}

}  // namespace

AnomalyWatch::AnomalyWatch(const AnomalyRules& rules, Zone zone, const ClockPair& now)
    : rules_(rules), zone_(std::move(zone)) {
  const bool counts = rules_.enabled && rules_.thrash.enabled;
  for (Shard& shard : shards_) {
    shard.urls =
        std::make_unique<UrlSketch>(counts ? kUrls / shards_.size() : 1, rules_.thrash.within);
  }
  tick(now);
}

// A conditional request is how one looks for news without asking for everything again (RFC 9110
// §13), and different ranges are different requests: neither is a loop. Nor are the same requests
// of different clients or jobs. A body is known by its length only.
std::uint64_t AnomalyWatch::url_of(const Ask& ask) {
  if (!rules_.enabled || !rules_.thrash.enabled || ask.tunnel) return 0;
  const Head& request = ask.request;
  std::uint64_t sum = mixed(hash(ask.path), hash(ask.host));
  for (const Field& field : request.fields) {
    if (field.id != FieldName::other) continue;
    if (equals_ignoring_case(field.name, "if-none-match") ||
        equals_ignoring_case(field.name, "if-modified-since")) {
      return 0;
    }
    if (equals_ignoring_case(field.name, "range")) sum = mixed(sum, hash(field.value));
  }
  sum = mixed(sum, hash(request.method) ^ ask.port);
  sum = mixed(sum, request.framing == Framing::length ? request.length : 0);
  sum = mixed(sum, ask.client);
  if (!ask.job.empty()) sum = mixed(sum, hash(lasting_name(ask)));
  const std::uint64_t url = sum == 0 ? 1 : sum;
  shard(url).urls->fetch(url);
  return url;
}

std::string AnomalyWatch::name_of(const Ask& ask, std::uint64_t url, Instant now) {
  if (url == 0) return {};
  Shard& mine = shard(url);
  std::unique_lock lock(mine.mutex);
  const std::uint32_t before = mine.urls->count(url, now);
  lock.unlock();
  // Those that come at the same time may all be told the same, so not only the last one has it.
  if (before == 0 || before + 2 < rules_.thrash.above) return {};
  return request_name(ask.request.method, ask.path);
}

std::uint32_t AnomalyWatch::count(std::uint64_t url, Instant now) {
  Shard& mine = shard(url);
  const std::lock_guard guard(mine.mutex);
  return mine.urls->add(url, now);
}

void AnomalyWatch::tick(const ClockPair& now) {
  offset_ = (now.utc.time_since_epoch() - now.mono.time_since_epoch()).count();
  working_hours_ = are_working(rules_.off_hours.hours, zone_, now.utc);
}

}  // namespace sluice
