// The request limits of all keys in this process: hands out single requests from blocks that were
// reserved in the store ahead of time, so that nobody waits for a disk and a crash exceeds nothing.
// Any thread; locks are held for a few instructions. Ask just before sending: a request counts from
// the moment it was let go here.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "policy/policy.h"
#include "store/clock_pair.h"
#include "store/store.h"

namespace sluice {

class RequestLimits {
 public:
  struct Answer {
    enum class Kind : std::uint8_t {
      go,      // one was taken
      soon,    // a block is on its way: on_refill follows
      at,      // the limits are used up: ask again at `at`, or when on_refill comes before
      failed,  // the store says no: `why`
    };
    Kind kind = Kind::go;
    Instant at{};       // with `go`: what give_back wants to know
    std::string why{};  // one sentence
  };
  // Called on the store's thread when a name that was told `soon` or `at` may be asked again; never
  // from inside a call of this class, so the two may share a lock of the caller's.
  using OnRefill = std::function<void(const std::string& name)>;

  RequestLimits(Store& store, OnRefill on_refill);
  ~RequestLimits();
  RequestLimits(const RequestLimits&) = delete;
  RequestLimits& operator=(const RequestLimits&) = delete;

  // `name`: whose windows, a key and, where a role has limits of its own, the role. Without limits
  // everybody may go.
  Answer take(const std::string& name, const LimitRules& rules, const ClockPair& now);
  // What was taken was not sent after all.
  void give_back(const std::string& name, const Answer& taken, const ClockPair& now);
  // About once a second: gives back what nobody asked for in time, and forgets idle names.
  void tidy(const ClockPair& now);
  // At the end: gives back everything that is left.
  void close(const ClockPair& now);

 private:
  class Books;
  std::shared_ptr<Books> books_;  // shared with writes under way
};

}  // namespace sluice
