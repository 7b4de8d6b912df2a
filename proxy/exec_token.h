// How the daemon knows a client that came through `sluice exec`: its password is a secret that lies
// in the state directory, readable by its owner only. Whoever can read it may use the proxy, trusts
// its CA, and is not asked for another password.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/result.h"

namespace sluice {

class ExecToken {
 public:
  // Reads it, or makes it where there is none. Two processes at once get the same one.
  static Result<ExecToken> load_or_make(const std::string& state_directory);

  struct Shown {
    std::string run;                 // which run of the job this is: letters and digits
    std::uint64_t max_requests = 0;  // that it may make; 0: no limit
  };
  // What a client shows: the secret, the run and its limit.
  std::string password(const Shown& shown) const;
  // Empty: it is not ours. The secret is compared in the same time whatever it is.
  std::optional<Shown> read(std::string_view password) const;

 private:
  explicit ExecToken(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace sluice
