#include "proxy/budget_ledger.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "proxy/budget_counters.h"
#include "proxy/budget_term.h"
#include "store/cost_record.h"
#include "store/counter.h"

namespace sluice {
namespace {

using Kind = BudgetLedger::Answer::Kind;

constexpr Duration kAskAgain = 1s;  // somebody else may have given something back
constexpr Micros kBlocks = 200;     // of a limit
using Errand = std::function<void()>;

}  // namespace

class BudgetLedger::Books : public std::enable_shared_from_this<Books> {
 public:
  Books(Store& store, const BudgetConfig& config, Zone zone, bool go_on, OnRefill on_refill)
      : store_(store),
        config_(config),
        zone_(std::move(zone)),
        go_on_(go_on),
        on_refill_(std::move(on_refill)),
        day_(daily_term(config)),
        month_(monthly_term(config)),
        block_(std::max<Micros>(1, std::min(day_.most, month_.most) / kBlocks)) {}

  bool unlimited() const { return day_.most == kNoLimit && month_.most == kNoLimit; }

  Answer take(Micros price, UtcTime now, const std::string& who) {
    for (;;) {
      std::vector<Errand> errands;
      bool asked = false;
      Answer answer;
      {
        const std::lock_guard guard(mutex_);
        const bool before = asking_;
        answer = decide(price, now, who, errands);
        asked = asking_ && !before;
      }
      for (const Errand& errand : errands) errand();
      if (!asked || !answered_meanwhile() || answer.kind != Kind::soon) return answer;
    }
  }

  std::optional<Answer> stopped(Micros price, UtcTime now) {
    std::vector<Errand> errands;
    bool asked = false;
    std::optional<Answer> answer;
    {
      const std::lock_guard guard(mutex_);
      const bool before = asking_;
      turn_over(now, errands);
      if (price > left_) answer = refusal(price, now, errands);
      asked = asking_ && !before;
    }
    for (const Errand& errand : errands) errand();
    if (asked) answered_meanwhile();
    return answer;
  }

  Answer force(Micros price, UtcTime now) {
    std::vector<Errand> errands;
    Answer answer;
    {
      const std::lock_guard guard(mutex_);
      turn_over(now, errands);
      spend(price, errands);
      answer = {Kind::go, price, day_.span.to, {}};
    }
    for (const Errand& errand : errands) errand();
    return answer;
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
        spend(actual - taken.taken, errands);
      }
    }
    for (const Errand& errand : errands) errand();
  }

  void tidy(UtcTime now) {
    std::vector<Errand> errands;
    std::vector<std::string> who;
    {
      const std::lock_guard guard(mutex_);
      turn_over(now, errands);
      pay(errands);
      // Somebody else's write was answered as it was handed over.
      if (!asking_) who = take_waiting();
    }
    for (const Errand& errand : errands) errand();
    tell(who);
  }

  void close(UtcTime now) {
    std::vector<Errand> errands;
    {
      const std::lock_guard guard(mutex_);
      turn_over(now, errands);
      closed_ = true;
      pay(errands);
      refund(std::exchange(left_, 0), errands);
    }
    for (const Errand& errand : errands) errand();
  }

 private:
  // The members below are called with the lock held, down to on_day().

  Answer decide(Micros price, UtcTime now, const std::string& who, std::vector<Errand>& errands) {
    turn_over(now, errands);
    if (price <= left_) {
      left_ -= price;
      if (left_ < block_ / 2 && now >= shut_until_) ask(block_ - left_, now, errands);
      return {Kind::go, price, day_.span.to, {}};
    }
    if (auto no = refusal(price, now, errands)) return *std::move(no);
    const bool may = may_ask(now);
    if (!trouble_.empty()) {
      if (may) ask(std::max(price, block_) - left_, now, errands);
      if (go_on_) return from_memory(price, errands);
      if (!may) return {Kind::failed, 0, {}, trouble_};
    }
    ask(std::max(price, block_) - left_, now, errands);
    if (!who.empty()) waiting_.insert(who);
    return {Kind::soon, 0, {}, {}};
  }

  bool may_ask(UtcTime now) const { return now >= asked_ + kAskAgain || now < asked_; }

  // What the store has said about a price that the block has not got.
  std::optional<Answer> refusal(Micros price, UtcTime now, std::vector<Errand>& errands) {
    if (now >= shut_until_ || price < shut_for_) return std::nullopt;
    if (may_ask(now)) ask(std::max(price, block_) - left_, now, errands);
    return Answer{Kind::stopped, 0, shut_until_, sentence_};
  }

  // As far as it was known when the store failed. What is spent is written down when it works
  // again.
  Answer from_memory(Micros price, std::vector<Errand>& errands) {
    for (const BudgetTerm* term : {&month_, &day_}) {
      if (term->most - std::min(term->most, term->seen + term->owed) >= price) continue;
      return {Kind::stopped, 0, term->span.to, stopped_sentence(*term, config_)};
    }
    charge_both(price, errands);
    return {Kind::go, price, day_.span.to, {}};
  }

  // It is spent already: from the block as far as that goes, the rest beyond any limit.
  void spend(Micros amount, std::vector<Errand>& errands) {
    const Micros from_block = std::min(amount, left_);
    left_ -= from_block;
    charge_both(amount - from_block, errands);
  }

  // A new day: what is left of the old one's block goes back to its counters.
  void turn_over(UtcTime now, std::vector<Errand>& errands) {
    if (now >= day_.span.from && now < day_.span.to) return;
    refund(std::exchange(left_, 0), errands);
    pay(errands);
    begin(day_, day_of(zone_, config_.reset, now));
    begin(month_, month_of(zone_, config_.reset, now));
    shut_until_ = UtcTime{};
  }

  static void begin(BudgetTerm& term, Span span) {
    if (term.span.name != span.name) term.seen = term.owed = 0;
    term.span = std::move(span);
  }

  // Into the block of the day it was taken from. Of an earlier day it counts as spent.
  void restore(const Answer& taken, Micros amount, std::vector<Errand>& errands) {
    if (taken.until != day_.span.to || amount == 0) return;
    if (closed_) return refund(amount, errands);
    left_ += amount;
  }

  void refund(Micros amount, std::vector<Errand>& errands) {
    if (amount <= 0) return;
    errands.emplace_back([&store = store_, day = day_, month = month_, amount] {
      refund_both(store, day, month, amount);
    });
  }

  void charge_both(Micros amount, std::vector<Errand>& errands) {
    if (amount <= 0) return;
    day_.owed += amount;
    month_.owed += amount;
    if (trouble_.empty()) pay(errands);
  }

  // What the store does not take now, it is offered again.
  void pay(std::vector<Errand>& errands) {
    for (BudgetTerm* term : {&day_, &month_}) {
      const Micros amount = std::exchange(term->owed, 0);
      if (amount == 0) continue;
      term->seen += amount;
      errands.emplace_back([self = shared_from_this(), name = term->name(), amount,
                            ends = term->span.to + kCostsKept] {
        charge(self->store_, name, static_cast<std::uint64_t>(amount), ends,
               {{}, [self, name, amount](const Result<std::uint64_t>& charged) {
                  if (!charged) self->owe(name, amount);
                }});
      });
    }
  }

  std::vector<std::string> take_waiting() {
    std::vector<std::string> who(waiting_.begin(), waiting_.end());
    waiting_.clear();
    return who;
  }

  void ask(Micros amount, UtcTime now, std::vector<Errand>& errands) {
    if (std::exchange(asking_, true)) return;
    asked_ = now;
    starter_ = std::this_thread::get_id();
    errands.emplace_back([self = shared_from_this(), day = day_, month = month_, amount, now] {
      reserve_both(self->store_, self->config_, day, month, amount, now,
                   [self](const BudgetGrant& grant) { self->on_answer(grant); });
    });
  }

  bool answered_meanwhile() {
    const std::lock_guard guard(mutex_);
    starter_ = {};
    return !asking_;
  }

  // Of a term that is over, nobody asks any more.
  void owe(const std::string& name, Micros amount) {
    const std::lock_guard guard(mutex_);
    for (BudgetTerm* term : {&day_, &month_}) {
      if (term->name() != name) continue;
      term->seen -= amount;
      term->owed += amount;
    }
  }

  void tell(const std::vector<std::string>& who) const {
    if (!who.empty() && on_refill_) on_refill_(who);
  }

  // Mostly on the store's thread.
  void on_answer(const BudgetGrant& grant) {
    std::vector<Errand> errands;
    std::vector<std::string> who;
    {
      const std::lock_guard guard(mutex_);
      asking_ = false;
      note_trouble(grant.trouble);
      const bool same_day = grant.day.span.to == day_.span.to;
      if (same_day && !closed_) {
        left_ += grant.granted;
      } else {
        errands.emplace_back(
            [this, grant] { refund_both(store_, grant.day, grant.month, grant.granted); });
      }
      if (grant.trouble.empty() && same_day) take_note(grant);
      if (starter_ != std::this_thread::get_id() && !closed_) who = take_waiting();
    }
    for (const Errand& errand : errands) errand();
    tell(who);
  }

  // With the lock held, as the next one: what the counters hold, and whether that is all there is.
  void take_note(const BudgetGrant& grant) {
    day_.seen = grant.day.seen;
    month_.seen = grant.month.seen;
    shut_until_ = UtcTime{};
    if (grant.tight == BudgetGrant::Tight::none) return;
    const BudgetTerm& tight = grant.tight == BudgetGrant::Tight::day ? grant.day : grant.month;
    shut_until_ = tight.span.to;
    shut_for_ = left_ + 1;
    sentence_ = stopped_sentence(tight, config_);
  }

  void note_trouble(std::string trouble) {
    if (trouble_.empty() != trouble.empty()) {
      if (trouble.empty()) {
        spdlog::warn("the budget is kept in the store again");
      } else {
        spdlog::error("the budget cannot be kept in the store: {}; {}", trouble,
                      go_on_ ? "what is spent is counted in memory only" : "what costs is refused");
      }
    }
    trouble_ = std::move(trouble);
  }

  Store& store_;
  const BudgetConfig config_;
  const Zone zone_;
  const bool go_on_;
  const OnRefill on_refill_;

  std::mutex mutex_;  // guards all below
  BudgetTerm day_, month_;
  const Micros block_;
  Micros left_ = 0;       // of the block at hand
  UtcTime shut_until_{};  // the store has no more until then
  Micros shut_for_ = 0;   // for a price of this and above
  std::string sentence_;  // why
  std::string trouble_;
  UtcTime asked_{};
  bool asking_ = false;
  bool closed_ = false;
  std::set<std::string> waiting_;  // those who were told `soon`
  std::thread::id starter_{};      // hands a write over just now: its own answer needs no call
};

BudgetLedger::BudgetLedger(Store& store, const BudgetConfig& config, Zone zone,
                           bool go_on_without_store, OnRefill on_refill)
    : books_(std::make_shared<Books>(store, config, std::move(zone), go_on_without_store,
                                     std::move(on_refill))) {}

BudgetLedger::~BudgetLedger() = default;

bool BudgetLedger::unlimited() const { return books_->unlimited(); }

BudgetLedger::Answer BudgetLedger::take(Micros price, UtcTime now, const std::string& who) {
  if (price <= 0 || books_->unlimited()) return {};
  return books_->take(price, now, who);
}

std::optional<BudgetLedger::Answer> BudgetLedger::stopped(Micros price, UtcTime now) {
  if (price <= 0 || books_->unlimited()) return std::nullopt;
  return books_->stopped(price, now);
}

BudgetLedger::Answer BudgetLedger::force(Micros price, UtcTime now) {
  if (price <= 0 || books_->unlimited()) return {};
  return books_->force(price, now);
}

void BudgetLedger::give_back(const Answer& taken, UtcTime now) {
  if (taken.taken > 0) books_->give_back(taken, now);
}

void BudgetLedger::correct(const Answer& taken, Micros actual, UtcTime now) {
  if (!books_->unlimited() && actual >= 0 && actual != taken.taken)
    books_->correct(taken, actual, now);
}

void BudgetLedger::tidy(UtcTime now) {
  if (!books_->unlimited()) books_->tidy(now);
}

void BudgetLedger::close(UtcTime now) { books_->close(now); }

}  // namespace sluice
