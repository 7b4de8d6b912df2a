#include "proxy/budget_counters.h"

#include <memory>
#include <utility>

#include "store/cost_record.h"
#include "store/counter.h"

namespace sluice {
namespace {

using Tight = BudgetGrant::Tight;

// One way through both counters. Alive as long as a write is under way.
class Reservation : public std::enable_shared_from_this<Reservation> {
 public:
  Reservation(Store& store, const BudgetConfig& config, BudgetGrant grant, Micros amount,
              UtcTime now, std::function<void(const BudgetGrant&)> done)
      : store_(store),
        config_(config),
        grant_(std::move(grant)),
        amount_(amount),
        now_(now),
        done_(std::move(done)) {}

  void begin() {
    take(grant_.day, amount_, [self = shared_from_this()](const Result<std::uint64_t>& granted) {
      self->on_day(granted);
    });
  }

 private:
  template <class Then>
  void take(const BudgetTerm& term, Micros amount, Then then) {
    reserve(store_, term.name(), static_cast<std::uint64_t>(amount),
            static_cast<std::uint64_t>(term.most), term.span.to + kCostsKept, {{}, then});
  }

  void on_day(const Result<std::uint64_t>& granted) {
    if (!granted) return fail(granted.error());
    const auto day = static_cast<Micros>(*granted);
    if (day < amount_) grant_.tight = Tight::day;
    if (day == 0) return end();
    take(grant_.month, day, [self = shared_from_this(), day](const Result<std::uint64_t>& month) {
      self->on_month(day, month);
    });
  }

  void on_month(Micros day, const Result<std::uint64_t>& granted) {
    const Micros month = granted ? static_cast<Micros>(*granted) : 0;
    if (month < day) refund(store_, grant_.day.name(), static_cast<std::uint64_t>(day - month), {});
    if (!granted) return fail(granted.error());
    if (month < day) grant_.tight = Tight::month;
    grant_.granted = month;
    end();
  }

  void fail(std::string trouble) {
    grant_.trouble = std::move(trouble);
    done_(grant_);
  }

  void end() {
    look_at_marks(store_, grant_.day, config_, now_);
    look_at_marks(store_, grant_.month, config_, now_);
    done_(grant_);
  }

  Store& store_;
  const BudgetConfig& config_;
  BudgetGrant grant_;
  const Micros amount_;
  const UtcTime now_;
  const std::function<void(const BudgetGrant&)> done_;
};

}  // namespace

void reserve_both(Store& store, const BudgetConfig& config, const BudgetTerm& day,
                  const BudgetTerm& month, Micros amount, UtcTime now,
                  std::function<void(const BudgetGrant&)> done) {
  std::make_shared<Reservation>(store, config, BudgetGrant{.day = day, .month = month}, amount, now,
                                std::move(done))
      ->begin();
}

void refund_both(Store& store, const BudgetTerm& day, const BudgetTerm& month, Micros amount) {
  if (amount <= 0) return;
  for (const BudgetTerm* term : {&day, &month})
    refund(store, term->name(), static_cast<std::uint64_t>(amount), {});
}

}  // namespace sluice
