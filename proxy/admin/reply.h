// An answer of the admin side, and its bytes. Every one carries the same headers that keep a
// browser from running, framing, sniffing or leaking anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/time.h"

namespace sluice {

struct AdminReply {
  std::uint16_t status = 200;
  std::string type = "application/json";
  std::string body;
  std::string allow;       // with 405
  bool challenge = false;  // with 401
  bool stream = false;     // no length: the body goes on until the connection ends
};

// {"error": …}, one sentence.
AdminReply admin_error(std::uint16_t status, std::string_view sentence);

std::string render(const AdminReply& reply, bool head_only, bool close, UtcTime now);

}  // namespace sluice
