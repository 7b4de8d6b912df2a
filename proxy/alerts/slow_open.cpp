#include "proxy/alerts/slow_open.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "policy/breaker.h"
#include "policy/sentence.h"
#include "policy/units.h"
#include "store/hosts.h"
#include "store/notice.h"

namespace sluice {
namespace {

constexpr std::size_t kMostShut = 10'000;  // keys that are followed; more at once is another alert

}  // namespace

void SlowOpen::look(const ClockPair& now) {
  Found found;
  std::string after;
  for (;;) {
    const auto page = list_hosts(store_, after, kMaxPageEntries, now, Duration::max());
    if (!page) return;  // whoever watches the store tells of it
    for (const ListedHost& host : page->hosts) {
      if (host.state) look_at(host.key, *host.state, now, found);
    }
    if (!page->more) break;
    after = page->hosts.back().key;
  }
  shut_ = std::move(found);
}

void SlowOpen::look_at(const std::string& key, const HostState& state, const ClockPair& now,
                       Found& found) {
  if (state.phase == Phase::closed || found.size() >= kMostShut) return;
  const auto known = shut_.find(key);
  const bool same = known != shut_.end() && known->second.closed_before == state.closed_at;
  Shut shut = same ? known->second : Shut{state.closed_at, state.opened_at, false};
  // One whose cooldown is over and that nobody asks for keeps nobody waiting.
  if (!shut.told && now.mono - shut.since >= after_ && phase_at(state, now.mono) == Phase::open) {
    shut.told = true;
    tell(key, state, shut, now);
  }
  found.emplace(key, shut);
}

void SlowOpen::tell(const std::string& key, const HostState& state, const Shut& shut,
                    const ClockPair& now) {
  Event event{now.utc, EventKind::alert, key,
              "shut for " + format_duration(now.mono - shut.since) +
                  " now: " + sentence(key, state, now.mono, now.utc),
              EventMark::lasts};
  const std::string which = std::to_string(now.boot) + "/" +
                            std::to_string(shut.closed_before.time_since_epoch().count());
  append_once(store_, std::string(kSlowOpenNotice) + key, which, event,
              {{}, [text = event.text](const Result<std::uint64_t>& told) {
                 if (told && *told == 1) spdlog::warn("{}", text);
                 if (!told) spdlog::error("not recorded: {}: {}", text, told.error());
               }});
}

}  // namespace sluice
