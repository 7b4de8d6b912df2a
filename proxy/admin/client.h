// Asks a running daemon through `admin.sock` of its state directory: for the command line. One
// request per connection; blocks, but never longer than it was told. Never on an event loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nlohmann/json_fwd.hpp"
#include "policy/result.h"
#include "policy/time.h"

namespace sluice {

struct AdminAnswer {
  std::uint16_t status = 0;
  std::string body;
};

class AdminClient {
 public:
  explicit AdminClient(const std::string& state_directory, Duration patience = 5s);

  // An error means that no daemon answered; a refusal is an answer.
  Result<AdminAnswer> get(std::string_view target) const;
  Result<AdminAnswer> post(std::string_view target, const nlohmann::json& body) const;

  // The body of a 200, or the sentence that stands in its way.
  Result<nlohmann::json> read(std::string_view target) const;
  // The sentence about what was done.
  Result<std::string> order(std::string_view target, const nlohmann::json& body) const;

 private:
  Result<AdminAnswer> exchange(const std::string& request) const;

  const std::string path_;
  const Duration patience_;
};

}  // namespace sluice
