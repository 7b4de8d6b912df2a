// The states of hosts in a store, one record per key. Saving is optimistic: who read an older
// version than the stored one must read again, so that no process overwrites what another has
// learned, and one probe lease has one owner. Any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/record.h"
#include "store/store.h"

namespace sluice {

inline constexpr std::string_view kHostPrefix = "host/";

struct LoadedHost {
  HostState state;                  // a fresh one if nothing is known
  std::uint64_t store_version = 0;  // true while Store::version() is this
};

Result<LoadedHost> load_host(Store& store, std::string_view key, const ClockPair& now,
                             Duration longest);

// For the one that keeps the state in memory: to this process the write is no news. Answered with
// the new version of the record; with 0 if another writer came first, and nothing was changed.
void save_host(Store& store, std::string_view key, const HostState& state, const ClockPair& now,
               Completion done);

// Reads, changes and writes in one step, so that nothing can come between: for an operator's word.
// A record that is missing or cannot be read is a fresh state. `change` may be called more than
// once, on the engine's thread. Answered with the new version.
void change_host(Store& store, std::string_view key, const ClockPair& now, Duration longest,
                 std::function<HostState(HostState)> change, Completion done);

struct ListedHost {
  std::string key;
  std::optional<HostState> state;  // none: the record cannot be read
};
struct HostPage {
  std::vector<ListedHost> hosts;  // in order of their keys
  bool more = false;              // ask again with `after` = the last key
};
Result<HostPage> list_hosts(Store& store, std::string_view after, std::size_t limit,
                            const ClockPair& now, Duration longest);

}  // namespace sluice
