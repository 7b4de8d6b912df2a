// Clients that end an intercepted handshake: what to tell the operator, and how often. Once per
// host, kind of trouble and minute, however often a client tries. One for all workers: any thread.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "policy/time.h"
#include "proxy/net/host_name.h"

namespace sluice {

class Distrust {
 public:
  struct Explanation {
    std::string text;         // empty: it was said a moment ago
    bool unknown_ca = false;  // the client does not trust us: somebody has to do something
  };
  // A failed handshake. `alert` is the client's, or -1; `error` what our side makes of it.
  Explanation explain(std::string_view host, int alert, std::string_view error, Instant now);

 private:
  std::mutex mutex_;       // guards what follows
  NameMap<Instant> said_;  // by kind and host
};

}  // namespace sluice
