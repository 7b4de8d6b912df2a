#include "store/hosts.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

std::string host_key(std::string_view key) { return std::string(kHostPrefix).append(key); }

// A new record starts at the time of day: who still knows a record that was swept away since then
// must not take its successor for the same one.
std::uint64_t next_version(const HostState& state, const ClockPair& now) {
  if (state.version != 0) return state.version + 1;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(1, now.utc.time_since_epoch().count()));
}

// The version does not depend on any clock.
std::uint64_t stored_version(std::string_view bytes, std::uint64_t otherwise) {
  const auto record = decode_host(bytes, {}, {});
  return record ? record->state.version : otherwise;
}

}  // namespace

Result<LoadedHost> load_host(Store& store, std::string_view key, const ClockPair& now,
                             Duration longest) {
  const auto read = store.get(host_key(key));
  if (!read) return Error{read.error()};
  if (!read->value) return LoadedHost{{}, read->version};
  auto record = decode_host(*read->value, now, longest);
  if (!record)
    return Error{"what is stored about " + std::string(key) + " is damaged: " + record.error()};
  return LoadedHost{std::move(record->state), read->version};
}

void save_host(Store& store, std::string_view key, const HostState& state, const ClockPair& now,
               Completion done) {
  HostState next = state;
  next.version = next_version(state, now);
  store.update(
      host_key(key),
      [expected = state.version, version = next.version,
       bytes = encode_host(next, now)](std::optional<std::string_view> current) {
        // A record that is gone or cannot be read is nobody's newer word.
        if (current && stored_version(*current, expected) != expected) return Change{};
        return Change{Change::Kind::put, bytes, version};
      },
      std::move(done));
}

void change_host(Store& store, std::string_view key, const ClockPair& now, Duration longest,
                 std::function<HostState(HostState)> change, Completion done) {
  store.update(
      host_key(key),
      [change = std::move(change), now, longest](std::optional<std::string_view> current) {
        HostState state;
        if (current) {
          if (auto record = decode_host(*current, now, longest)) state = std::move(record->state);
        }
        HostState next = change(state);
        next.version = next_version(state, now);
        return Change{Change::Kind::put, encode_host(next, now), next.version, true};
      },
      std::move(done));
}

Result<HostPage> list_hosts(Store& store, std::string_view after, std::size_t limit,
                            const ClockPair& now, Duration longest) {
  const auto page = store.scan(kHostPrefix, after.empty() ? "" : host_key(after), limit);
  if (!page) return Error{page.error()};
  HostPage hosts;
  hosts.more = page->more;
  for (const Entry& entry : page->entries) {
    ListedHost listed{entry.key.substr(kHostPrefix.size()), std::nullopt};
    if (auto record = decode_host(entry.value, now, longest))
      listed.state = std::move(record->state);
    hosts.hosts.push_back(std::move(listed));
  }
  return hosts;
}

}  // namespace sluice
