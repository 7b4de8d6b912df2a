#include "proxy/governor/anomaly_board.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "policy/anomaly_sentence.h"
#include "proxy/governor/gate.h"
#include "proxy/random_text.h"

namespace sluice {

AnomalyBoard::AnomalyBoard(Store& store, const AnomalyRules& rules, OnLost on_lost)
    : store_(store), rules_(rules), on_lost_(std::move(on_lost)), process_(random_hex(8)) {}

void AnomalyBoard::tell(const NotedAnomaly& noted, UtcTime now) {
  if (noted.ended) {
    spdlog::info("{}", noted.sentence);
  } else {
    spdlog::warn("{}", noted.sentence);
  }
  append_or(store_, {now, EventKind::anomaly, noted.key, noted.sentence}, on_lost_);
}

void AnomalyBoard::report(const std::shared_ptr<Gate>& gate, std::string_view key,
                          const AnomalyNews& news, const ClockPair& now) {
  using What = AnomalyNews::What;
  const OngoingAnomaly& anomaly = news.anomaly;
  NotedAnomaly noted{.kind = anomaly.kind,
                     .action = anomaly.action,
                     .key = std::string(key),
                     .sentence = anomaly_sentence(key, rules_, news),
                     .since = now.utc - (now.mono - anomaly.since)};
  if (news.what == What::began) ++begun_[static_cast<std::size_t>(anomaly.kind)];
  const std::lock_guard guard(mutex_);
  const std::pair name{noted.key, noted.kind};
  const bool full = listed_ >= kMostListed;
  const auto found = going_on_.find(name);
  const bool listed =
      found != going_on_.end() ? found->second.listed : news.what != What::ended && !full;
  changed_ |= listed;
  if (news.what == What::ended) {
    noted.ended = now.utc;
    if (found != going_on_.end()) going_on_.erase(found);
    if (listed) {
      --listed_;
      ended_.push_front(noted);
      if (ended_.size() > kMostEnded) ended_.pop_back();
    }
  } else if (found == going_on_.end()) {
    if (listed && ++listed_ == kMostListed) {
      spdlog::warn("{} anomalies go on at once: further ones are only counted", kMostListed);
    }
    going_on_.emplace(name, Entry{noted, gate, listed});
  } else {
    found->second.noted = noted;
  }
  count_ = going_on_.size();
  if (listed) tell(noted, now.utc);
}

std::vector<std::shared_ptr<Gate>> AnomalyBoard::gates() {
  std::vector<std::shared_ptr<Gate>> out;
  if (count_ == 0) return out;
  const std::lock_guard guard(mutex_);
  for (const auto& [name, entry] : going_on_) {
    auto gate = entry.gate.lock();
    // In order of their keys, so the same one follows itself.
    if (gate && (out.empty() || out.back() != gate)) out.push_back(std::move(gate));
  }
  return out;
}

std::vector<NotedAnomaly> AnomalyBoard::written() const {
  std::vector<NotedAnomaly> out;
  for (const auto& [name, entry] : going_on_) {
    if (entry.listed) out.push_back(entry.noted);
  }
  return out;
}

std::vector<NotedAnomaly> AnomalyBoard::listed() {
  const std::lock_guard guard(mutex_);
  auto out = written();
  out.insert(out.end(), ended_.begin(), ended_.end());
  return out;
}

std::array<std::uint64_t, kAnomalyKinds> AnomalyBoard::begun() const {
  std::array<std::uint64_t, kAnomalyKinds> out{};
  std::copy(begun_.begin(), begun_.end(), out.begin());
  return out;
}

void AnomalyBoard::save(const ClockPair& now) {
  const std::lock_guard guard(mutex_);
  const bool stale = !going_on_.empty() && now.mono - written_at_ >= kAnomaliesHold / 3;
  if (!changed_ && !stale) return;
  changed_ = false;
  written_at_ = now.mono;
  save_anomalies(store_, process_, written(), now, {});
}

void AnomalyBoard::close(const ClockPair& now) {
  const std::lock_guard guard(mutex_);
  if (written_at_ != Instant{}) save_anomalies(store_, process_, {}, now, {});
}

}  // namespace sluice
