// Prices that only answers name: the dearest that was named so far is what the next request must
// find in the budget. While none was named, one request at a time finds out and all others wait, so
// that a crowd of first requests cannot spend what nobody has counted. Kept in the store, so that
// other processes and the next start know it, too. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/cost.h"
#include "store/store.h"

namespace sluice {

// Requests that are expected to cost the same: of one policy, which says so much of them.
struct PriceClass {
  std::string_view policy;
  Micros declared = 0;  // the most that one costs, says the policy; 0: it does not say
};

class PriceBook {
 public:
  static constexpr Duration kKept = 30 * 24h;  // what was named, after it was the dearest

  struct Quote {
    Micros price = 0;
    bool scout = false;  // it finds out the price: hand it back with scouted()
  };

  // The store must outlive every write the book has begun.
  explicit PriceBook(Store& store) : store_(store) {}

  // At least the smallest coin.
  Micros expected(const PriceClass& of);
  // None: somebody is finding out, and `who` is among those to tell once that is over.
  std::optional<Quote> ask(const PriceClass& of, const std::string& who);
  void named(const PriceClass& of, Micros price, UtcTime now);
  // A scout is back. True: it brought no price, for the first time.
  bool scouted(const PriceClass& of, bool answered);
  // An answer's price cannot be read. True: nobody has said so lately.
  bool unreadable(const PriceClass& of, UtcTime now);
  // Who may ask again.
  std::vector<std::string> take_ready();
  // What other processes have learned.
  void refresh();

 private:
  struct Known {
    std::string counter;
    Micros dearest = 0;  // 0: none was named
    bool scouting = false;
    bool complained = false;
    UtcTime unreadable{};  // when that was last said
    std::set<std::string> waiting;
  };
  Known& find(const PriceClass& of);
  void read(Known& known);

  Store& store_;
  std::mutex mutex_;  // guards all below
  std::map<std::string, Known, std::less<>> known_;
  std::set<std::string> ready_;
};

}  // namespace sluice
