#include "proxy/request_limits.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/limit_record.h"

namespace sluice {
namespace {

using Limits = std::vector<RequestLimit>;
using Kind = RequestLimits::Answer::Kind;

constexpr std::uint64_t kMaxBlock = 1000;
constexpr unsigned kMaxPatience = 16;
constexpr Duration kAskAgain = 1s;  // somebody else may have given something back
constexpr Duration kIdle = 1min;

// A hundredth of the tightest limit: that is what a crash wastes.
std::uint64_t block_size(const Limits& limits) {
  std::uint64_t least = kMaxBlock * 100;
  for (const RequestLimit& limit : limits) least = std::min(least, limit.count);
  return std::clamp<std::uint64_t>(least / 100, 1, kMaxBlock);
}

// A request counts as if sent at the end of its block's time, so that time is short.
Duration block_time(const Limits& limits) {
  Duration shortest = Duration::max();
  for (const RequestLimit& limit : limits) shortest = std::min(shortest, limit.per);
  return std::clamp<Duration>(shortest / 64, 200ms, 5s);
}

struct Block {
  Limits limits;  // under which it was taken
  Instant until{};
  std::uint64_t left = 0;
  bool untouched = true;
};

struct Account {
  Limits limits;
  std::vector<Block> blocks;  // the one in use and the next
  Instant shut_until{};       // nothing before that, says the store
  Instant asked{};
  bool asking = false;
  std::thread::id starter{};  // hands the write over just now: its own answer needs no call
  bool awaited = false;       // somebody was told `soon` or `at`
  unsigned patience = 1;      // how many times longer a block must live on a slow disk
  std::string trouble;        // the last answer was an error

  std::uint64_t left() const {
    std::uint64_t sum = 0;
    for (const Block& block : blocks) sum += block.left;
    return sum;
  }
};

// A write that is handed to the store once no lock is held: it may be answered at once.
using Errand = std::function<void()>;

}  // namespace

class RequestLimits::Books : public std::enable_shared_from_this<Books> {
 public:
  Books(Store& store, OnRefill on_refill) : store_(store), on_refill_(std::move(on_refill)) {}

  Answer take(const std::string& name, const Limits& limits, const ClockPair& now) {
    for (;;) {
      std::vector<Errand> errands;
      bool asked = false;
      Answer answer;
      {
        Shard& shard = shard_of(name);
        const std::lock_guard guard(shard.mutex);
        Account& account = shard.accounts[name];
        const bool before = account.asking;
        answer = decide(name, account, limits, now, errands);
        asked = account.asking && !before;
      }
      for (const Errand& errand : errands) errand();
      if (!asked || !answered_meanwhile(name) || answer.kind != Kind::soon) return answer;
    }
  }

  void give_back(const std::string& name, const Answer& taken, const ClockPair& now) {
    Shard& shard = shard_of(name);
    Limits limits;
    {
      const std::lock_guard guard(shard.mutex);
      const auto found = shard.accounts.find(name);
      if (found == shard.accounts.end()) return;  // it counts as sent
      for (Block& block : found->second.blocks) {
        if (block.until != taken.at || now.mono >= block.until) continue;
        ++block.left;
        return;
      }
      limits = found->second.limits;
    }
    refund_requests(store_, name, limits, taken.at, 1, now, {});
  }

  void tidy(const ClockPair& now) {
    for (Shard& shard : shards_) {
      std::vector<Errand> errands;
      {
        const std::lock_guard guard(shard.mutex);
        for (auto& [name, account] : shard.accounts) {
          expire(name, account, now, errands);
          // Somebody else's write was answered as it was handed over.
          if (account.left() == 0 || !std::exchange(account.awaited, false)) continue;
          if (on_refill_) errands.emplace_back([this, name = name] { on_refill_(name); });
        }
        std::erase_if(shard.accounts, [&](const auto& entry) {
          const Account& account = entry.second;
          return !account.asking && account.blocks.empty() && account.asked + kIdle < now.mono;
        });
      }
      for (const Errand& errand : errands) errand();
    }
  }

  void close(const ClockPair& now) {
    for (Shard& shard : shards_) {
      std::vector<Errand> errands;
      {
        const std::lock_guard guard(shard.mutex);
        shard.closed = true;
        for (auto& [name, account] : shard.accounts) {
          for (const Block& block : account.blocks) refund(name, block, now, errands);
          account.blocks.clear();
        }
      }
      for (const Errand& errand : errands) errand();
    }
  }

 private:
  struct Shard {
    std::mutex mutex;  // guards all below
    std::unordered_map<std::string, Account> accounts;
    bool closed = false;
  };

  Shard& shard_of(const std::string& name) {
    return shards_[std::hash<std::string>{}(name) % shards_.size()];
  }

  // The members below are called with the account's lock held; on_answer() takes it.

  Answer decide(const std::string& name, Account& account, const Limits& limits,
                const ClockPair& now, std::vector<Errand>& errands) {
    if (account.limits !=
        limits) {  // the policy was changed: the history stays, the answer may not
      account.limits = limits;
      account.shut_until = Instant{};
    }
    expire(name, account, now, errands);
    for (Block& block : account.blocks) {
      if (block.left == 0 || block.limits != limits) continue;
      --block.left;
      block.untouched = account.awaited = false;
      const Instant until = block.until;
      if (account.left() <= block_size(limits) / 2) ask(name, account, now, false, errands);
      return {Kind::go, until, {}};
    }
    account.awaited = true;
    const bool may_ask = now.mono >= account.asked + kAskAgain;
    if (now.mono < account.shut_until) {
      if (may_ask) ask(name, account, now, true, errands);
      return {Kind::at, account.shut_until, {}};
    }
    if (!account.trouble.empty() && !may_ask) return {Kind::failed, {}, account.trouble};
    ask(name, account, now, true, errands);
    return {Kind::soon, {}, {}};
  }

  void refund(const std::string& name, const Block& block, const ClockPair& now,
              std::vector<Errand>& errands) {
    if (block.left == 0) return;
    errands.emplace_back([this, name, block, now] {
      refund_requests(store_, name, block.limits, block.until, block.left, now, {});
    });
  }

  void expire(const std::string& name, Account& account, const ClockPair& now,
              std::vector<Errand>& errands) {
    std::erase_if(account.blocks, [&](const Block& block) {
      if (block.left > 0 && now.mono < block.until) return false;
      if (block.untouched) account.patience = std::min(account.patience * 2, kMaxPatience);
      refund(name, block, now, errands);
      return true;
    });
  }

  void ask(const std::string& name, Account& account, const ClockPair& now, bool needed,
           std::vector<Errand>& errands) {
    if (std::exchange(account.asking, true)) return;
    account.starter = std::this_thread::get_id();
    account.asked = now.mono;
    LimitBlockAsk terms;
    terms.now = now;
    terms.ahead = block_time(account.limits) * account.patience;
    terms.want = block_size(account.limits);
    terms.needed = needed;
    errands.emplace_back([this, name, limits = account.limits, terms] {
      reserve_requests(
          store_, name, limits, terms,
          {{},
           [self = shared_from_this(), name, limits, terms](const Result<std::uint64_t>& granted) {
             self->on_answer(name, limits, terms, granted);
           }});
    });
  }

  // True: the answer is there already.
  bool answered_meanwhile(const std::string& name) {
    Shard& shard = shard_of(name);
    const std::lock_guard guard(shard.mutex);
    Account& account = shard.accounts[name];
    account.starter = {};
    return !account.asking;
  }

  // When the next one may go, for a name that got nothing.
  Instant look_ahead(const std::string& name, const Limits& limits, const ClockPair& now) {
    const auto history = limit_history(store_, name, now);
    if (!history) return now.mono + kAskAgain;
    // Free after all: somebody has given something back in between.
    return std::max(next_free(limits, *history, now.mono), now.mono + 10ms);
  }

  // Mostly on the store's thread.
  void on_answer(const std::string& name, const Limits& limits, const LimitBlockAsk& terms,
                 const Result<std::uint64_t>& granted) {
    const bool shut = granted && *granted == 0 && terms.needed;
    const Instant free_at = shut ? look_ahead(name, limits, terms.now) : Instant{};
    std::vector<Errand> errands;
    bool tell = false;
    {
      Shard& shard = shard_of(name);
      const std::lock_guard guard(shard.mutex);
      Account& account = shard.accounts[name];
      account.asking = false;
      account.trouble = granted ? std::string() : granted.error();
      if (shut) account.shut_until = free_at;
      if (granted && *granted > 0) {
        account.shut_until = Instant{};
        const Block block{limits, terms.now.mono + terms.ahead, *granted};
        if (shard.closed) {
          refund(name, block, terms.now, errands);
        } else {
          account.blocks.push_back(block);
        }
      }
      if (account.starter != std::this_thread::get_id() && !shard.closed) {
        tell = std::exchange(account.awaited, false);
      }
    }
    for (const Errand& errand : errands) errand();
    if (tell && on_refill_) on_refill_(name);
  }

  Store& store_;
  const OnRefill on_refill_;
  std::array<Shard, 16> shards_;
};

RequestLimits::RequestLimits(Store& store, OnRefill on_refill)
    : books_(std::make_shared<Books>(store, std::move(on_refill))) {}

RequestLimits::~RequestLimits() = default;

RequestLimits::Answer RequestLimits::take(const std::string& name, const LimitRules& rules,
                                          const ClockPair& now) {
  if (rules.requests.empty()) return {};
  return books_->take(name, rules.requests, now);
}

void RequestLimits::give_back(const std::string& name, const Answer& taken, const ClockPair& now) {
  if (taken.at != Instant{}) books_->give_back(name, taken, now);
}

void RequestLimits::tidy(const ClockPair& now) { books_->tidy(now); }

void RequestLimits::close(const ClockPair& now) { books_->close(now); }

}  // namespace sluice
