// Any bytes as a policy file give a policy that keeps its bounds, or complaints that name a place
// in it.
#include "policy/policy_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "policy/policy_set.h"

namespace {

using namespace sluice;

void require(bool truth) {
  if (!truth) std::abort();
}

void check_rules(const Rules& rules) {
  const BreakerRules& breaker = rules.breaker;
  require(breaker.consecutive >= 1 && breaker.trial_calls >= 1 && breaker.successes_to_close >= 1);
  require(breaker.jitter >= 0 && breaker.jitter <= 1);
  for (const auto* ladder : {&breaker.cooldown, &breaker.antibot_cooldown}) {
    require(!ladder->empty() && std::is_sorted(ladder->begin(), ladder->end()) &&
            ladder->front() > 0s);
  }
  require(breaker.window.failures >= 1 && breaker.window.failures <= kMaxWindowFailures);
  require(rules.pace.cap >= rules.pace.min_delay && rules.pace.min_delay >= 0s);
  require(rules.cost.per_request >= 0);
  for (const RequestLimit& limit : rules.limits.requests)
    require(limit.count > 0 && limit.per > 0s);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const PolicyReading reading = read_policy(text, "p.toml", Policy{});
  const auto lines = static_cast<unsigned>(std::count(text.begin(), text.end(), '\n')) + 1;
  for (const Diagnostic& problem : reading.problems) {
    require(!problem.message.empty() && problem.line >= 1 && problem.line <= lines &&
            problem.column >= 1);
    for (const char c : render(problem)) {
      require(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
    }
  }
  if (!reading.problems.empty()) return 0;
  const Policy& policy = reading.read.policy;
  require(!policy.hosts.empty() && policy.hosts.size() == reading.read.hosts.size());
  check_rules(policy.rules);
  for (const Role& role : policy.roles) check_rules(role.rules);
  PolicySet set;
  require(set.add(reading.read).empty());
  require(set.match("a.test", 80, "/").policy != nullptr);
  return 0;
}
