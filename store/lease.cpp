#include "store/lease.h"

#include <algorithm>
#include <utility>

#include "store/wire.h"

namespace sluice {
namespace {

constexpr char kLeaseLetter = 'L';
constexpr std::uint8_t kLeaseVersion = 1;
constexpr std::size_t kMaxOwner = 1000;

std::string lease_key(std::string_view name) { return std::string(kLeasePrefix).append(name); }

std::string encode(const Lease& lease) {
  WireWriter fields;
  fields.number(lease.ends.utc.time_since_epoch().count());
  fields.number(lease.ends.mono.time_since_epoch().count());
  fields.number(lease.ends.boot);
  fields.number(static_cast<std::uint16_t>(lease.owner.size()));
  fields.text(lease.owner);
  return seal({kLeaseLetter, kLeaseVersion, 1}, fields.bytes());
}

// None: it cannot be read, so it binds nobody.
std::optional<Lease> decode(std::string_view bytes) {
  const auto fields = unseal(bytes, kLeaseLetter, kLeaseVersion);
  if (!fields) return std::nullopt;
  WireReader reader(*fields);
  Lease lease;
  lease.ends.utc = UtcTime{Duration{reader.number<std::int64_t>()}};
  lease.ends.mono = Instant{Duration{reader.number<std::int64_t>()}};
  lease.ends.boot = reader.number<std::uint64_t>();
  lease.owner = reader.text(reader.number<std::uint16_t>());
  if (!reader.ok()) return std::nullopt;
  return lease;
}

bool same_boot(const Lease& lease, const ClockPair& now) {
  return lease.ends.boot != 0 && lease.ends.boot == now.boot;
}

bool is_over(const Lease& lease, const ClockPair& now) {
  return same_boot(lease, now) ? lease.ends.mono <= now.mono : lease.ends.utc <= now.utc;
}

}  // namespace

void take_lease(Store& store, std::string_view name, std::string owner, const ClockPair& now,
                Duration length, Completion done) {
  owner.resize(std::min(owner.size(), kMaxOwner));
  Lease mine{std::move(owner), {now.mono + length, now.utc + length, now.boot}};
  store.update(
      lease_key(name),
      [mine = std::move(mine), now](std::optional<std::string_view> current) {
        std::optional<Lease> held = current ? decode(*current) : std::nullopt;
        if (!held || is_over(*held, now) || held->owner == mine.owner)
          return Change{Change::Kind::put, encode(mine), 1};
        if (same_boot(*held, now) || held->ends.utc <= mine.ends.utc) return Change{};
        // It seems to last longer than a lease does: the clock went back. Its owner keeps it for
        // one whole length from now, not longer.
        held->ends = mine.ends;
        return Change{Change::Kind::put, encode(*held), 0};
      },
      std::move(done));
}

void release_lease(Store& store, std::string_view name, std::string owner, Completion done) {
  owner.resize(std::min(owner.size(), kMaxOwner));
  store.update(
      lease_key(name),
      [owner = std::move(owner)](std::optional<std::string_view> current) {
        const std::optional<Lease> held = current ? decode(*current) : std::nullopt;
        if (!held || held->owner != owner) return Change{};
        return Change{Change::Kind::erase, {}, 1};
      },
      std::move(done));
}

Result<std::optional<Lease>> find_lease(Store& store, std::string_view name, const ClockPair& now) {
  const auto read = store.get(lease_key(name));
  if (!read) return Error{read.error()};
  std::optional<Lease> held = read->value ? decode(*read->value) : std::nullopt;
  if (held && is_over(*held, now)) held.reset();
  return held;
}

bool lease_is_over(std::string_view bytes, const ClockPair& now) {
  const auto held = decode(bytes);
  return !held || is_over(*held, now);
}

}  // namespace sluice
