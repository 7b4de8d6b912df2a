#include "store/counter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "store/wire.h"

namespace sluice {
namespace {

constexpr char kCounterLetter = 'C';
constexpr std::uint8_t kCounterVersion = 1;

struct Counter {
  std::uint64_t total = 0;
  UtcTime ends{};
};

std::string counter_key(std::string_view name) { return std::string(kCounterPrefix).append(name); }

std::string encode(const Counter& counter) {
  WireWriter fields;
  fields.number(counter.total);
  fields.number(counter.ends.time_since_epoch().count());
  return seal({kCounterLetter, kCounterVersion, 1}, fields.bytes());
}

// One that cannot be read counts as used up: rather too little than too much.
Counter decode(std::string_view bytes) {
  const Counter used_up{std::numeric_limits<std::uint64_t>::max(), UtcTime::max()};
  const auto fields = unseal(bytes, kCounterLetter, kCounterVersion);
  if (!fields) return used_up;
  WireReader reader(*fields);
  Counter counter;
  counter.total = reader.number<std::uint64_t>();
  counter.ends = UtcTime{Duration{reader.number<std::int64_t>()}};
  return reader.ok() ? counter : used_up;
}

}  // namespace

void reserve(Store& store, std::string_view name, std::uint64_t amount, std::uint64_t limit,
             UtcTime ends, Completion done) {
  store.update(
      counter_key(name),
      [amount, limit, ends](std::optional<std::string_view> current) {
        Counter counter = current ? decode(*current) : Counter{0, ends};
        const std::uint64_t left = limit > counter.total ? limit - counter.total : 0;
        const std::uint64_t granted = std::min(amount, left);
        if (granted == 0) return Change{};
        counter.total += granted;
        counter.ends = std::max(counter.ends, ends);
        return Change{Change::Kind::put, encode(counter), granted};
      },
      std::move(done));
}

void charge(Store& store, std::string_view name, std::uint64_t amount, UtcTime ends,
            Completion done) {
  // The largest total is that of a counter nobody can read.
  reserve(store, name, amount, std::numeric_limits<std::uint64_t>::max() - 1, ends,
          std::move(done));
}

void refund(Store& store, std::string_view name, std::uint64_t amount, Completion done) {
  store.update(
      counter_key(name),
      [amount](std::optional<std::string_view> current) {
        if (!current) return Change{};
        Counter counter = decode(*current);
        if (counter.ends == UtcTime::max()) return Change{};
        const std::uint64_t given = std::min(amount, counter.total);
        counter.total -= given;
        return Change{Change::Kind::put, encode(counter), given};
      },
      std::move(done));
}

Result<std::uint64_t> reserved(Store& store, std::string_view name) {
  const auto read = store.get(counter_key(name));
  if (!read) return Error{read.error()};
  return read->value ? decode(*read->value).total : 0;
}

bool counter_is_over(std::string_view bytes, UtcTime now) { return decode(bytes).ends <= now; }

}  // namespace sluice
