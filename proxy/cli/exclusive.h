// The right to run under a name that no two commands share, among all processes that use the store:
// a lease that is renewed while the command runs and ends by itself if it cannot be.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "policy/result.h"
#include "policy/time.h"
#include "proxy/config_reader.h"
#include "store/store.h"

namespace sluice {

class Exclusive {
 public:
  struct Taken {
    std::unique_ptr<Exclusive> held;  // null: somebody else has it
    std::string owner;                // who, then
  };

  // `run` tells this owner from every other, also from one with its process number elsewhere.
  static Result<Taken> take(const LoadedConfig& loaded, const std::string& name, Duration ttl,
                            const std::string& run, const std::string& command);
  ~Exclusive();  // gives it back, unless
  void leave_to_its_end() { left_ = true; }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

  // When due, else nothing. Empty: it is ours still. Else it was lost, and this is who has it.
  std::string renew();
  // How often renew() must be called at least.
  Duration interval() const { return std::min<Duration>(ttl_ / 4, 1s); }

 private:
  Exclusive(std::unique_ptr<Store> store, std::string name, std::string owner, Duration ttl)
      : store_(std::move(store)), name_(std::move(name)), owner_(std::move(owner)), ttl_(ttl) {}

  std::string holder() const;

  const std::unique_ptr<Store> store_;
  const std::string name_, owner_;
  const Duration ttl_;
  Instant renewed_{};  // the last time that it was known to be ours
  Instant tried_{};
  bool left_ = false;
};

}  // namespace sluice
