// Emulated origins: what each enforces, how it says so, how large its batch is. Seed 0 gives the
// standard numbers, others draw quotas, windows and latencies that nothing was tuned on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "unit/policy/lab/limiter.h"

namespace sluice::lab {

enum class Style { retry_seconds, silent, ietf, github, github403, openai, retry_date, bot_page };

struct Profile {
  std::string name{};
  Style style = Style::silent;
  std::string policy{};  // RateLimit-Policy, for ietf
  int tasks = 0;
  double latency = 0.020;  // of an admitted request
  std::function<std::unique_ptr<Limiter>()> limiter{};
  std::function<std::unique_ptr<Limiter>()> quota{};  // what one who knows it all may use
  int in_flight = 0;                                  // the limit on concurrency; 0: another kind
  bool unlimited = false;
  int fail_pct = 0;     // of admitted requests, answered 500
  int neutral_pct = 0;  // of requests, answered 404

  double oracle_time(double network) const;  // for the batch
};

std::vector<Profile> profiles(std::uint64_t seed);
Profile find_profile(const std::string& name, std::uint64_t seed = 0);

}  // namespace sluice::lab
