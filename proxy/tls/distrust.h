// Clients that end an intercepted handshake: what to tell the operator, and how often. One line per
// host and minute, however often a client tries. One for all workers: any thread.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "policy/time.h"
#include "proxy/net/host_name.h"

namespace sluice {

class Distrust {
 public:
  // What to log about a failed handshake; empty: it was said a moment ago. `alert` is the client's,
  // or -1; `error` what our side makes of it.
  std::string explain(std::string_view host, int alert, std::string_view error, Instant now);

 private:
  std::mutex mutex_;  // guards what follows
  NameMap<Instant> said_;
};

}  // namespace sluice
