// The right to run under a name that no two commands share, among all processes that use the store:
// a lease that is renewed while the command runs and ends by itself if it cannot be.
#pragma once

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

  static Result<Taken> take(const LoadedConfig& loaded, const std::string& name, Duration ttl,
                            const std::string& command);
  ~Exclusive();  // gives it back
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

  // When due, else nothing. False: it was lost, and somebody else may have it now.
  bool renew();

 private:
  Exclusive(std::unique_ptr<Store> store, std::string name, std::string owner, Duration ttl)
      : store_(std::move(store)), name_(std::move(name)), owner_(std::move(owner)), ttl_(ttl) {}

  const std::unique_ptr<Store> store_;
  const std::string name_, owner_;
  const Duration ttl_;
  Instant renewed_{};
};

}  // namespace sluice
