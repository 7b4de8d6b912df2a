#include "proxy/price_book.h"

#include <algorithm>
#include <utility>

#include "store/counter.h"

namespace sluice {
namespace {

constexpr Micros kSmallestCoin = 1;
constexpr Duration kSaidAgain = 10min;
constexpr std::uint64_t kNoPrice = 1'000'000'000'000'000;  // beyond what an answer can name

std::string name_of(const PriceClass& of) {
  return "price/" + std::string(of.policy) + "/" + std::to_string(of.declared);
}

}  // namespace

// With the lock held, as read().
PriceBook::Known& PriceBook::find(const PriceClass& of) {
  const auto [found, is_new] = known_.try_emplace(name_of(of));
  if (is_new) {
    found->second.counter = found->first;
    read(found->second);
  }
  return found->second;
}

// What cannot be read stays unknown: then one request at a time finds out.
void PriceBook::read(Known& known) {
  const auto stored = reserved(store_, known.counter);
  if (!stored || *stored >= kNoPrice) return;
  known.dearest = std::max(known.dearest, static_cast<Micros>(*stored));
}

Micros PriceBook::expected(const PriceClass& of) {
  const std::lock_guard guard(mutex_);
  return std::max({of.declared, find(of).dearest, kSmallestCoin});
}

std::optional<PriceBook::Quote> PriceBook::ask(const PriceClass& of, const std::string& who) {
  const std::lock_guard guard(mutex_);
  Known& known = find(of);
  const Micros price = std::max({of.declared, known.dearest, kSmallestCoin});
  if (of.declared > 0 || known.dearest > 0) return Quote{price};
  if (known.scouting) {
    known.waiting.insert(who);
    return std::nullopt;
  }
  known.scouting = true;
  return Quote{price, true};
}

void PriceBook::named(const PriceClass& of, Micros price, UtcTime now) {
  if (price <= of.declared) return;
  const std::lock_guard guard(mutex_);
  Known& known = find(of);
  if (price <= known.dearest) return;
  known.dearest = price;
  ready_.merge(known.waiting);
  known.waiting.clear();
  // Raises it to this price and no further, whoever else does so just now.
  const auto amount = static_cast<std::uint64_t>(price);
  reserve(store_, known.counter, amount, amount, now + kKept, {});
}

bool PriceBook::scouted(const PriceClass& of, bool answered) {
  const std::lock_guard guard(mutex_);
  Known& known = find(of);
  known.scouting = false;
  ready_.merge(known.waiting);
  known.waiting.clear();
  return answered && known.dearest == 0 && !std::exchange(known.complained, true);
}

bool PriceBook::unreadable(const PriceClass& of, UtcTime now) {
  const std::lock_guard guard(mutex_);
  Known& known = find(of);
  // A clock that was set back must not make it silent.
  if (now >= known.unreadable && now - known.unreadable < kSaidAgain) return false;
  known.unreadable = now;
  return true;
}

std::vector<std::string> PriceBook::take_ready() {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> who(ready_.begin(), ready_.end());
  ready_.clear();
  return who;
}

void PriceBook::refresh() {
  const std::lock_guard guard(mutex_);
  for (auto& [name, known] : known_) {
    const bool unknown = known.dearest == 0;
    read(known);
    if (!unknown || known.dearest == 0) continue;
    ready_.merge(known.waiting);
    known.waiting.clear();
  }
}

}  // namespace sluice
