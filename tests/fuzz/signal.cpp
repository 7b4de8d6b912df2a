// Any bytes as header fields give a signal within its bounds or nothing; never a wait below zero.
#include "policy/signal.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "policy/units.h"

// The input is a head: lines of "name:value".
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<FieldView> fields;
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    fields.push_back({line.substr(0, colon), line.substr(colon + 1)});
  }
  const Signal signal = read_signal(fields, UtcTime(1773309570s));
  const auto sane = [](const std::optional<Duration>& wait) {
    return !wait || (*wait >= Duration(0) && *wait <= kLongestDuration + 1s);
  };
  if (signal.quota_count > Signal::max_quotas || !sane(signal.retry_after)) std::abort();
  const auto wait = signal.named_wait();
  if (!sane(wait) || wait == Duration(0)) std::abort();
  for (const Quota& quota : signal.quotas) {
    if (!sane(quota.reset) || !sane(quota.window)) std::abort();
  }
  return 0;
}
