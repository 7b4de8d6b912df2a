#include "store/anomaly_record.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "store/wire.h"

namespace sluice {
namespace {

constexpr char kAnomalyLetter = 'A';
constexpr std::uint8_t kAnomalyVersion = 1;
constexpr std::size_t kLongestSentence = 400;

std::int64_t micros(UtcTime time) { return time.time_since_epoch().count(); }

void put_text(WireWriter& out, std::string_view text, std::size_t most) {
  text = text.substr(0, most);
  out.number(static_cast<std::uint16_t>(text.size()));
  out.text(text);
}

std::string encode(const std::vector<NotedAnomaly>& noted, const ClockPair& now) {
  WireWriter fields;
  fields.number(micros(now.utc));
  for (const NotedAnomaly& one : noted) {
    if (fields.bytes().size() > kMaxValueSize - 2048) break;  // the longest is less than 1 KiB
    fields.number(static_cast<std::uint8_t>(one.kind));
    fields.number(static_cast<std::uint8_t>(one.action));
    fields.number(micros(one.since));
    put_text(fields, one.key, kMaxKeySize);
    put_text(fields, one.sentence, kLongestSentence);
  }
  return seal({kAnomalyLetter, kAnomalyVersion, 1}, fields.bytes());
}

struct Written {
  UtcTime at{};
  std::vector<NotedAnomaly> noted;
};

Result<Written> decode(std::string_view bytes) {
  const auto fields = unseal(bytes, kAnomalyLetter, kAnomalyVersion);
  if (!fields) return Error{fields.error()};
  WireReader reader(*fields);
  Written out;
  out.at = UtcTime{Duration{reader.number<std::int64_t>()}};
  while (!reader.done()) {
    NotedAnomaly one;
    const auto kind = reader.number<std::uint8_t>();
    const auto action = reader.number<std::uint8_t>();
    one.since = UtcTime{Duration{reader.number<std::int64_t>()}};
    one.key = reader.text(reader.number<std::uint16_t>());
    one.sentence = reader.text(reader.number<std::uint16_t>());
    if (kind >= kAnomalyKinds || action > static_cast<std::uint8_t>(AnomalyAction::open)) continue;
    one.kind = static_cast<AnomalyKind>(kind);
    one.action = static_cast<AnomalyAction>(action);
    out.noted.push_back(std::move(one));
  }
  if (!reader.ok()) return Error{"the record of anomalies ends too early"};
  return out;
}

// By the wall clock: whoever asks may be in another boot. One that jumped makes it over, too.
bool is_over(UtcTime written, UtcTime now) {
  return written < now - kAnomaliesHold || written > now + kAnomaliesHold;
}

}  // namespace

void save_anomalies(Store& store, std::string_view process, const std::vector<NotedAnomaly>& noted,
                    const ClockPair& now, Completion done) {
  std::string key = std::string(kAnomalyPrefix).append(process);
  if (noted.empty()) return store.erase(std::move(key), std::move(done));
  store.put(std::move(key), encode(noted, now), std::move(done));
}

Result<std::vector<NotedAnomaly>> load_anomalies(Store& store, const ClockPair& now) {
  const auto page = store.scan(kAnomalyPrefix, "", kMaxPageEntries);
  if (!page) return Error{page.error()};
  std::vector<NotedAnomaly> out;
  for (const Entry& entry : page->entries) {
    auto written = decode(entry.value);
    if (!written || is_over(written->at, now.utc)) continue;
    std::move(written->noted.begin(), written->noted.end(), std::back_inserter(out));
  }
  std::stable_sort(out.begin(), out.end(), [](const NotedAnomaly& a, const NotedAnomaly& b) {
    return std::tie(a.key, a.kind) < std::tie(b.key, b.kind);
  });
  return out;
}

bool anomalies_are_over(std::string_view bytes, const ClockPair& now) {
  const auto written = decode(bytes);
  return !written || is_over(written->at, now.utc);
}

}  // namespace sluice
