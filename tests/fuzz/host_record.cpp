// Any bytes read as a host's record, at any time, give a state within its bounds or an error; and
// what was read can be written and read again without a change.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "store/event.h"
#include "store/record.h"
#include "store/wire.h"

namespace {

using namespace sluice;

constexpr Duration kLongest = 48h;

void check(const HostState& state, const ClockPair& now) {
  const auto after = [&](Instant time) { return time != Instant{} && time > now.mono; };
  if (state.phase > Phase::half_open || state.cause > Cause::anomaly) std::abort();
  if (state.reason.size() > HostState::max_reason || state.said.size() > HostState::max_said)
    std::abort();
  if (state.window.size() > HostState::max_window || state.leases.size() > HostState::max_leases)
    std::abort();
  if (after(state.opened_at) || after(state.closed_at) || after(state.calm_since)) std::abort();
  for (const Instant failure : state.window)
    if (after(failure)) std::abort();
  const bool ours = state.cause == Cause::operator_act || state.cause == Cause::anomaly;
  if (!ours && state.until > now.mono + kLongest) std::abort();
  for (const ProbeLease& lease : state.leases)
    if (lease.expires > now.mono + kLongest) std::abort();
  if (after(state.pace.learned_at) || state.asked < Duration(0)) std::abort();
  for (const Duration time : {state.pace.delay, state.pace.delay_floor, state.pace.length})
    if (time < Duration(0)) std::abort();
  if (!(state.pace.rate >= 0) || !(state.pace.burst >= 0)) std::abort();
}

void read(std::string_view bytes, const ClockPair& now) {
  const auto record = decode_host(bytes, now, kLongest);
  if (!record) return;
  if (record->saved > now.mono) std::abort();
  check(record->state, now);
  const auto again = decode_host(encode_host(record->state, now), now, kLongest);
  if (!again || again->state != record->state) std::abort();
}

}  // namespace

// The input is a moment on both clocks and a boot, then a record: as it is, and with a seal that
// fits, because nobody guesses a sum.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  WireReader input(std::string_view(reinterpret_cast<const char*>(data), size));
  // A machine that has been up for at most some decades, within some thousand years of 1970.
  const Instant mono{Duration{input.number<std::uint64_t>() >> 14}};
  const ClockPair now{mono, UtcTime{Duration{input.number<std::int64_t>() >> 6}},
                      input.number<std::uint8_t>()};
  if (!input.ok()) return 0;
  read(input.rest(), now);
  read(seal({'H', 1, 1}, input.rest()), now);
  if (const auto event = decode_event(seal({'E', 1, 1}, input.rest())))
    if (event->key.size() <= kMaxEventText && event->text.size() <= kMaxEventText &&
        decode_event(encode_event(*event))->text != event->text)
      std::abort();
  return 0;
}
