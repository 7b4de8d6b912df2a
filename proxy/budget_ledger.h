// The money that may still be spent: today's and this month's, shared by every process on the
// store. Prices are taken from a block that was reserved in the store ahead of time, so that no
// request waits for a disk, nothing is ever spent twice, and a crash counts as spent what it held
// (one block). Any thread; locks are held for a few instructions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/cost.h"
#include "policy/zone.h"
#include "proxy/config.h"
#include "store/store.h"

namespace sluice {

class BudgetLedger {
 public:
  struct Answer {
    enum class Kind : std::uint8_t {
      go,       // the price was taken
      soon,     // a block is on its way: on_refill follows
      stopped,  // past stop_at: until `until`
      failed,   // the store says no: `why`
    };
    Kind kind = Kind::go;
    Micros taken = 0;
    UtcTime until{};    // with `go`: the end of the day it was taken from
    std::string why{};  // one sentence, with `stopped` too
  };
  // Called on the store's thread, or from tidy(), with those who were told `soon` and may ask
  // again; never from another call of this class.
  using OnRefill = std::function<void(const std::vector<std::string>& who)>;

  // The store must outlive the ledger and every write it has begun. `go_on_without_store`: while it
  // fails, the budget is kept in memory.
  BudgetLedger(Store& store, const BudgetConfig& config, Zone zone, bool go_on_without_store,
               OnRefill on_refill);
  ~BudgetLedger();
  BudgetLedger(const BudgetLedger&) = delete;
  BudgetLedger& operator=(const BudgetLedger&) = delete;

  bool unlimited() const;
  // Without a limit, and for what costs nothing, everybody may go. `who`: for OnRefill.
  Answer take(Micros price, UtcTime now, const std::string& who = {});
  // Whether a price like this is known to be too much: then take() would say `stopped`. Takes
  // nothing.
  std::optional<Answer> stopped(Micros price, UtcTime now);
  // Takes it whatever the limit says.
  Answer force(Micros price, UtcTime now);
  // Nothing was sent: the price comes back.
  void give_back(const Answer& taken, UtcTime now);
  // The answer named what it has cost: more or less than was taken.
  void correct(const Answer& taken, Micros actual, UtcTime now);
  // About once a second: a new day, debts, and whoever was not told yet.
  void tidy(UtcTime now);
  // At the end: gives back the rest of the block.
  void close(UtcTime now);

 private:
  class Books;
  std::shared_ptr<Books> books_;  // shared with writes under way
};

}  // namespace sluice
