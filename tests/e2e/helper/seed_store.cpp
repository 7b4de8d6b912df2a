// seed_store DIRECTORY COUNT : writes the states of COUNT hosts into a store, as a proxy that had
// met them would have. Tests start a proxy on it.
#include <algorithm>
#include <future>
#include <iostream>
#include <string>

#include "proxy/clock.h"
#include "store/hosts.h"
#include "store/open.h"

using namespace sluice;

namespace {

HostState host(unsigned i) {
  HostState state;
  state.counts.success = i % 977;
  state.counts.rate_limited = i % 7;
  state.said = "slow down";
  return state;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const ClockPair now = clock_now();
  auto opened = open_store("lmdb:", argv[1], now.utc);
  if (!opened) {
    std::cerr << opened.error() << "\n";
    return 1;
  }
  const auto count = static_cast<unsigned>(std::stoul(argv[2]));
  // The store takes a hundred thousand writes at once and no more.
  constexpr unsigned kAtOnce = 20'000;
  for (unsigned i = 0; i < count;) {
    const unsigned end = std::min(count, i + kAtOnce);
    std::promise<bool> last;
    for (; i < end; ++i) {
      const bool ends = i + 1 == end;
      save_host(*opened->store, "host-" + std::to_string(i) + ".test", host(i), now,
                {{}, [&last, ends](const Result<std::uint64_t>& saved) {
                   if (ends) last.set_value(static_cast<bool>(saved));
                 }});
    }
    if (!last.get_future().get()) return 1;
  }
  return 0;
}
