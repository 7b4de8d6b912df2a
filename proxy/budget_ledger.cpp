#include "proxy/budget_ledger.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "store/counter.h"
#include "store/notice.h"

namespace sluice {
namespace {

using Kind = BudgetLedger::Answer::Kind;

constexpr Duration kAskAgain = 1s;    // somebody else may have given something back
constexpr Duration kKept = 62 * 24h;  // a counter after its period, for reports
constexpr Micros kBlocks = 200;       // of a limit
constexpr Micros kNoLimit = std::numeric_limits<Micros>::max();

// What may be spent: stop_at of the limit.
Micros ceiling(double money, double stop_at) {
  return money > 0 ? static_cast<Micros>(static_cast<double>(to_micros(money)) * stop_at)
                   : kNoLimit;
}

struct Period {
  const char* word;     // "daily"
  const char* counter;  // "budget/day/"
  Micros limit = 0;     // 0: none
  Micros most = kNoLimit;
  Span span;

  std::string name() const { return counter + span.name; }
};

using Errand = std::function<void()>;

}  // namespace

class BudgetLedger::Books : public std::enable_shared_from_this<Books> {
 public:
  Books(Store& store, const BudgetConfig& config, Zone zone, OnRefill on_refill)
      : store_(store),
        config_(config),
        zone_(std::move(zone)),
        on_refill_(std::move(on_refill)),
        day_{"daily",
             "budget/day/",
             to_micros(config.daily),
             ceiling(config.daily, config.stop_at),
             {}},
        month_{"monthly",
               "budget/month/",
               to_micros(config.monthly),
               ceiling(config.monthly, config.stop_at),
               {}},
        block_(std::max<Micros>(1, std::min(day_.most, month_.most) / kBlocks)) {}

  bool unlimited() const { return day_.most == kNoLimit && month_.most == kNoLimit; }

  Answer take(Micros price, UtcTime now) {
    for (;;) {
      std::vector<Errand> errands;
      bool asked = false;
      Answer answer;
      {
        const std::lock_guard guard(mutex_);
        const bool before = asking_;
        answer = decide(price, now, errands);
        asked = asking_ && !before;
      }
      for (const Errand& errand : errands) errand();
      if (!asked || !answered_meanwhile() || answer.kind != Kind::soon) return answer;
    }
  }

  void give_back(const Answer& taken, UtcTime now) {
    std::vector<Errand> errands;
    {
      const std::lock_guard guard(mutex_);
      turn_over(now, errands);
      restore(taken, taken.taken, errands);
    }
    for (const Errand& errand : errands) errand();
  }

  void correct(const Answer& taken, Micros actual, UtcTime now) {
    std::vector<Errand> errands;
    {
      const std::lock_guard guard(mutex_);
      turn_over(now, errands);
      if (actual <= taken.taken) {
        restore(taken, taken.taken - actual, errands);
      } else {
        // It is spent already: from the block as far as that goes, the rest beyond any limit.
        const Micros more = actual - taken.taken;
        const Micros from_block = std::min(more, left_);
        left_ -= from_block;
        charge_both(more - from_block, errands);
      }
    }
    for (const Errand& errand : errands) errand();
  }

  void close(UtcTime now) {
    std::vector<Errand> errands;
    {
      const std::lock_guard guard(mutex_);
      turn_over(now, errands);
      closed_ = true;
      refund_both(std::exchange(left_, 0), errands);
    }
    for (const Errand& errand : errands) errand();
  }

 private:
  // The members below are called with the lock held, down to on_day().

  Answer decide(Micros price, UtcTime now, std::vector<Errand>& errands) {
    turn_over(now, errands);
    if (price <= left_) {
      left_ -= price;
      if (left_ < block_ / 2 && now >= shut_until_) ask(block_ - left_, 0, now, errands);
      return {Kind::go, price, day_.span.to, {}};
    }
    awaited_ = true;
    const bool may_ask = now >= asked_ + kAskAgain || now < asked_;
    if (now < shut_until_ && price >= shut_for_) {
      if (may_ask) ask(std::max(price, block_) - left_, price, now, errands);
      return {Kind::stopped, 0, shut_until_, sentence_};
    }
    if (!trouble_.empty() && !may_ask) return {Kind::failed, 0, {}, trouble_};
    ask(std::max(price, block_) - left_, price, now, errands);
    return {Kind::soon, 0, {}, {}};
  }

  // A new day: what is left of the old one's block goes back to its counters.
  void turn_over(UtcTime now, std::vector<Errand>& errands) {
    if (now >= day_.span.from && now < day_.span.to) return;
    refund_both(std::exchange(left_, 0), errands);
    day_.span = day_of(zone_, config_.reset, now);
    month_.span = month_of(zone_, config_.reset, now);
    shut_until_ = UtcTime{};
  }

  // Into the block of the day it was taken from. Of an earlier day it counts as spent.
  void restore(const Answer& taken, Micros amount, std::vector<Errand>& errands) {
    if (taken.until != day_.span.to || amount == 0) return;
    if (closed_) return refund_both(amount, errands);
    left_ += amount;
  }

  void refund_both(Micros amount, std::vector<Errand>& errands) {
    if (amount <= 0) return;
    for (const Period* period : {&day_, &month_}) {
      errands.emplace_back([this, name = period->name(), amount] {
        refund(store_, name, static_cast<std::uint64_t>(amount), {});
      });
    }
  }

  void charge_both(Micros amount, std::vector<Errand>& errands) {
    if (amount <= 0) return;
    for (const Period* period : {&day_, &month_}) {
      errands.emplace_back([this, name = period->name(), amount, ends = period->span.to + kKept] {
        charge(store_, name, static_cast<std::uint64_t>(amount), ends, {});
      });
    }
  }

  struct Request {
    Micros amount, needed;  // 0 needed: only to be ahead
    Period day, month;
    UtcTime now;
  };

  void ask(Micros amount, Micros needed, UtcTime now, std::vector<Errand>& errands) {
    if (std::exchange(asking_, true)) return;
    asked_ = now;
    starter_ = std::this_thread::get_id();
    errands.emplace_back(
        [self = shared_from_this(), request = Request{amount, needed, day_, month_, now}] {
          reserve(self->store_, request.day.name(), static_cast<std::uint64_t>(request.amount),
                  static_cast<std::uint64_t>(request.day.most), request.day.span.to + kKept,
                  {{}, [self, request](const Result<std::uint64_t>& granted) {
                     self->on_day(request, granted);
                   }});
        });
  }

  bool answered_meanwhile() {
    const std::lock_guard guard(mutex_);
    starter_ = {};
    return !asking_;
  }

  // Mostly on the store's thread, as all below: the day has granted, now the month.
  void on_day(const Request& request, const Result<std::uint64_t>& granted) {
    if (!granted) return on_answer(request, granted, nullptr);
    if (*granted == 0) return on_answer(request, granted, &request.day);
    reserve(
        store_, request.month.name(), *granted, static_cast<std::uint64_t>(request.month.most),
        request.month.span.to + kKept,
        {{},
         [self = shared_from_this(), request, day = *granted](const Result<std::uint64_t>& month) {
           const std::uint64_t kept = month ? *month : 0;
           if (kept < day) refund(self->store_, request.day.name(), day - kept, {});
           self->on_answer(request, month, kept < day ? &request.month : &request.day);
         }});
  }

  // `tight`: the period that gave less than was asked for, if one did.
  void on_answer(const Request& request, const Result<std::uint64_t>& granted,
                 const Period* tight) {
    if (granted) tell_marks(request);
    std::vector<Errand> errands;
    bool tell = false;
    {
      const std::lock_guard guard(mutex_);
      asking_ = false;
      trouble_ = granted ? std::string() : granted.error();
      const Micros got = granted ? static_cast<Micros>(*granted) : 0;
      const bool same_day = request.day.span.to == day_.span.to;
      if (same_day && !closed_) {
        left_ += got;
      } else {
        refund_of(request, got, errands);
      }
      if (granted && same_day && request.needed > 0) {
        if (left_ < request.needed) {
          shut_until_ = tight->span.to;
          shut_for_ = left_ + 1;
          sentence_ = stopped_sentence(*tight);
        } else {
          shut_until_ = UtcTime{};
        }
      }
      if (starter_ != std::this_thread::get_id() && !closed_) tell = std::exchange(awaited_, false);
    }
    for (const Errand& errand : errands) errand();
    if (tell && on_refill_) on_refill_();
  }

  void refund_of(const Request& request, Micros amount, std::vector<Errand>& errands) {
    if (amount <= 0) return;
    for (const Period* period : {&request.day, &request.month}) {
      errands.emplace_back([this, name = period->name(), amount] {
        refund(store_, name, static_cast<std::uint64_t>(amount), {});
      });
    }
  }

  std::string stopped_sentence(const Period& period) const {
    return "the " + std::string(period.word) + " budget of " + format_money(period.limit) + " " +
           config_.currency + " is used up to its stop mark of " +
           std::to_string(static_cast<int>(config_.stop_at * 100 + 0.5)) + " %";
  }

  // One event per mark and period, whoever passes it.
  void tell_marks(const Request& request) {
    for (const Period* period : {&request.day, &request.month}) {
      if (period->limit == 0) continue;
      const auto total = reserved(store_, period->name());
      if (!total) continue;
      const double share = static_cast<double>(*total) / static_cast<double>(period->limit);
      const bool stopped = *total >= static_cast<std::uint64_t>(period->most);
      if (!stopped && share < config_.alert_at) continue;
      Event event{request.now, EventKind::budget, "", stopped_sentence(*period)};
      if (!stopped) {
        event.text = "the " + std::string(period->word) + " budget of " +
                     format_money(period->limit) + " " + config_.currency + " is used to " +
                     std::to_string(static_cast<int>(share * 100)) + " %";
      }
      const std::string mark = period->span.name + (stopped ? " stop" : " alert");
      append_once(store_, std::string(period->counter), mark, event, {});
    }
  }

  Store& store_;
  const BudgetConfig config_;
  const Zone zone_;
  const OnRefill on_refill_;

  std::mutex mutex_;  // guards all below
  Period day_, month_;
  const Micros block_;
  Micros left_ = 0;       // of the block at hand
  UtcTime shut_until_{};  // the store has no more until then
  Micros shut_for_ = 0;   // for a price of this and above
  std::string sentence_;  // why
  std::string trouble_;
  UtcTime asked_{};
  bool asking_ = false;
  bool awaited_ = false;  // somebody was told `soon` or `stopped`
  bool closed_ = false;
  std::thread::id starter_{};  // hands a write over just now: its own answer needs no call
};

BudgetLedger::BudgetLedger(Store& store, const BudgetConfig& config, Zone zone, OnRefill on_refill)
    : books_(std::make_shared<Books>(store, config, std::move(zone), std::move(on_refill))) {}

BudgetLedger::~BudgetLedger() = default;

BudgetLedger::Answer BudgetLedger::take(Micros price, UtcTime now) {
  if (price <= 0 || books_->unlimited()) return {};
  return books_->take(price, now);
}

void BudgetLedger::give_back(const Answer& taken, UtcTime now) {
  if (taken.taken > 0) books_->give_back(taken, now);
}

void BudgetLedger::correct(const Answer& taken, Micros actual, UtcTime now) {
  if (!books_->unlimited() && actual >= 0 && actual != taken.taken)
    books_->correct(taken, actual, now);
}

void BudgetLedger::close(UtcTime now) { books_->close(now); }

Result<BudgetStates> budget_states(Store& store, const BudgetConfig& config, const Zone& zone,
                                   UtcTime now) {
  BudgetStates states;
  const auto fill = [&](BudgetState& state, Span span, const char* counter,
                        double limit) -> Result<bool> {
    const auto total = reserved(store, counter + span.name);
    if (!total) return Error{total.error()};
    state = {std::move(span), to_micros(limit), static_cast<Micros>(*total)};
    return true;
  };
  const auto day = fill(states.day, day_of(zone, config.reset, now), "budget/day/", config.daily);
  if (!day) return Error{day.error()};
  const auto month =
      fill(states.month, month_of(zone, config.reset, now), "budget/month/", config.monthly);
  if (!month) return Error{month.error()};
  return states;
}

}  // namespace sluice
