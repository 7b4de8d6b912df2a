// What a request takes with it when it goes: a place in the windows of `limits`, and its price from
// the budget. Taken last, so that nothing is taken for a request that waits; what was not sent
// gives it back. Any thread; may be called with a gate's lock held.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "proxy/budget_ledger.h"
#include "proxy/cost_book.h"
#include "proxy/governor/admission.h"
#include "proxy/price_book.h"
#include "proxy/request_limits.h"

namespace sluice {

// Of a request that costs, or whose answer may say that it did.
struct Cost {
  Micros price = 0;   // named by the policy
  bool open = false;  // the answer may name another one
  std::string host;   // for the report
};

// Nothing for what costs nothing. `tunnel`: nobody will see an answer that names a price.
std::shared_ptr<const Cost> cost_of(const CostRules& rules, std::string_view host,
                                    std::string_view path, bool tunnel);

// What was taken for one request.
struct Allowance {
  Instant place{};     // in the windows; Instant{}: none
  Micros money = 0;    // from the budget
  UtcTime day_end{};   // of the day whose money it was
  UtcTime at{};        // when; UtcTime{}: it costs nothing
  bool scout = false;  // its answer is the first to name a price

  bool empty() const { return place == Instant{} && at == UtcTime{}; }
};

class Allowances {
 public:
  struct Options {
    BudgetConfig budget{};
    Zone zone{};
    bool go_on_without_store = false;
  };
  struct Answer {
    enum class Kind : std::uint8_t {
      go,
      soon,    // the store is being asked: on_refill follows
      limit,   // until `until`
      budget,  // until `until`, and waiting makes no sense
      price,   // another request finds out what such a one costs: tell_ready() follows
      failed,  // the store says no
    };
    Kind kind = Kind::go;
    Instant until{};
    std::string why{};  // with `go`: why it would not, if the policy did not only observe
    Allowance taken{};
  };
  // Called on the store's thread, or on that of tidy() or tell_ready(), with a key that was told
  // `soon`, `limit` or `price`.
  using OnRefill = std::function<void(const std::string& key)>;

  Allowances(Store& store, const Options& options, const OnRefill& on_refill);

  // Whether it must be asked at all: for most requests this is all there is.
  static bool concern(const Journey& who) {
    return who.cost != nullptr || !who.match.rules->limits.requests.empty();
  }
  // The budget is known to be used up for such a request.
  std::optional<Answer> stopped(const Journey& who);
  Answer take(const std::string& key, const Journey& who);
  void give_back(const std::string& key, const Journey& who, const Allowance& taken);
  // It was sent, and this is the word of its answer about the price.
  struct Bill {
    std::optional<Micros> named{};
    std::optional<std::string> unreadable{};  // what stands where the price should
    bool answered = true;
  };
  void spent(const Journey& who, const Allowance& taken, const Bill& bill);
  // Whoever waited for a price. Not with a gate's lock held.
  void tell_ready();

  void tidy();   // about once a second
  void close();  // at the end: gives back what is left

 private:
  bool take_place(const std::string& key, const Journey& who, Answer& answer);
  void take_money(const std::string& key, const Journey& who, Answer& answer);
  bool is_bound(const Journey& who) const;
  void scouted(const Journey& who, const Allowance& taken, bool answered);
  void complain_of(const Journey& who, const std::string& value);

  const bool go_on_;
  RequestLimits limits_;
  BudgetLedger ledger_;
  PriceBook prices_;
  CostBook book_;
  const OnRefill on_refill_;
  std::atomic<bool> limits_fail_{false};  // said so already
};

}  // namespace sluice
