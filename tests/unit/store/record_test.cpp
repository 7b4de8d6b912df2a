// A HostState as bytes and back: every field, every clock, every version.
#include "store/record.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "policy/breaker.h"
#include "store/wire.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

constexpr std::uint64_t kBoot = 42;
const Instant kStart{std::chrono::hours(100)};
const ClockPair kNow{kStart, kNoon, kBoot};

ClockPair later(Duration mono, Duration utc, std::uint64_t boot = kBoot) {
  return {kNow.mono + mono, kNow.utc + utc, boot};
}

// No field has its default. One that is added to HostState breaks the binding below: give it a
// value here, and a tag in store/record.cpp.
HostState full_state() {
  HostState state;
  auto& [phase, cause, status, opened_at, until, asked, closed_at, epoch, level, antibot_level,
         calm_since, consecutive, probe_successes, window, leases, last_lease, pace, streak, usual,
         reason, said, counts, version] = state;
  auto& [model, known, ban, learned_at, refusals, hold, count, length, shortest, longest, proven,
         coarse, used, rate, burst, patience, cap, cap_patience, delay, delay_floor, pace_streak,
         lowered] = pace;
  phase = Phase::half_open;
  cause = Cause::probe_failed;
  status = 429;
  opened_at = kStart - 60s;
  until = kStart + 600s;
  asked = 2h;
  closed_at = kStart - 5h;
  epoch = 1'000'000'000'007;
  level = 3;
  antibot_level = 2;
  calm_since = kStart - 61s;
  consecutive = 4;
  probe_successes = 1;
  window = {kStart - 50s, kStart - 40s};
  leases = {{8, kStart + 20s}, {9, kStart + 31s}};
  last_lease = 9;
  delay = 1500ms;
  delay_floor = 250ms;
  streak = 17;
  model = PaceModel::window;
  known = ban = coarse = lowered = true;
  learned_at = kStart - 70s;
  refusals = 4;
  hold = kStart + 30s;
  count = 30;
  length = 60s;
  shortest = 59s;
  longest = 61s;
  proven = 3;
  rate = 0.5;
  burst = 12.25;
  patience = 21;
  cap = 6;
  cap_patience = 22;
  pace_streak = 18;
  used.fill({kStart - 3s, 5});
  for (std::size_t i = 0; i < usual.peaks.size(); ++i)
    usual.peaks[i] = static_cast<std::uint16_t>(1000 + i);
  usual.hour = 492'000;
  usual.peak = 41;
  usual.doubtful = 1;
  usual.since = kNow.utc - 50h;
  reason = "maintenance, ask Ada";
  said = "slow down, \xc3\xa9h";
  counts = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  version = 77;
  return state;
}

HostState open_for(Duration length, Cause cause = Cause::named_time) {
  HostState state;
  state.phase = Phase::open;
  state.cause = cause;
  state.until = kStart + length;
  state.epoch = 1;
  return state;
}

HostState read(const std::string& bytes, const ClockPair& now, Duration longest = 48h) {
  auto record = decode_host(bytes, now, longest);
  REQUIRE(record);
  return record->state;
}

std::string_view fields_of(const std::string& record) { return *unseal(record, 'H', 1); }

}  // namespace

TEST_CASE("record: every field comes back") {
  const HostState state = full_state();
  const auto record = decode_host(encode_host(state, kNow), kNow, 48h);
  REQUIRE(record);
  CHECK(record->state == state);
  CHECK(record->saved == kNow.mono);
  CHECK(read(encode_host({}, kNow), kNow) == HostState{});
}

TEST_CASE("record: \"never\" stays never, also where the clock has just started") {
  for (const Instant now : {Instant{}, Instant{1us}, Instant{1h}}) {
    const ClockPair then{now, kNoon, kBoot};
    HostState state = open_for(0s);
    state.until = now + 1us;
    const HostState back = read(encode_host(state, then), then);
    CHECK(back.opened_at == Instant{});
    CHECK(back.closed_at == Instant{});
    CHECK(back.until == state.until);
  }
  // A moment that would fall on the number that means never is moved by the least there is.
  const HostState back = read(encode_host(open_for(600s), kNow), {Instant{}, kNoon + 600s, 7});
  CHECK(back.until != Instant{});
  CHECK(back.until <= Instant{1us});
}

TEST_CASE("record: a moment at the start of 1970 is a moment") {
  const ClockPair then{kStart, UtcTime{} - 600s, kBoot};
  CHECK(read(encode_host(open_for(600s), then), then).until == kStart + 600s);
}

TEST_CASE("record: no jump of the wall clock stretches or voids a cooldown") {
  constexpr Duration year = std::chrono::hours(24 * 365), boot_after = -99h;
  struct Row {
    const char* name;
    Duration mono, utc;  // since it was written
    std::uint64_t boot;
    Duration left;  // of 600 s
  };
  const Row rows[] = {
      {"at once", 0s, 0s, kBoot, 600s},
      {"a minute later", 60s, 60s, kBoot, 540s},
      {"a minute later, the clock a year ahead", 60s, year, kBoot, 540s},
      {"a minute later, the clock a year back", 60s, -year, kBoot, 540s},
      {"it is over", 600s, 600s, kBoot, 0s},
      {"it is long over, the clock a year back", 6000s, -year, kBoot, -5400s},
      {"another boot, a minute later", boot_after, 60s, 7, 540s},
      {"another boot, over meanwhile", boot_after, 700s, 7, -100s},
      {"another boot, the clock a year back: no time has passed", boot_after, -year, 7, 600s},
      {"another boot, a monotonic clock far ahead", 1000h, 60s, 7, 540s},
      {"a boot that nobody knows, a minute later", boot_after, 60s, 0, 540s},
  };
  const std::string bytes = encode_host(open_for(600s), kNow);
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const ClockPair now = later(row.mono, row.utc, row.boot);
    CHECK((read(bytes, now).until - now.mono) / 1us == row.left / 1us);
  }
}

TEST_CASE("record: neither side knows its boot: the wall clock counts") {
  ClockPair then = kNow;
  then.boot = 0;
  const std::string bytes = encode_host(open_for(600s), then);
  const ClockPair now = later(-50h, 60s, 0);
  CHECK(read(bytes, now).until - now.mono == 540s);
}

TEST_CASE("record: saved again and again under a clock that jumps about, it ends in time") {
  std::mt19937 random(3);
  HostState state = open_for(600s);
  ClockPair now = kNow;
  for (int i = 0; i < 500; ++i) {
    const std::string bytes = encode_host(state, now);
    now.mono += 1s;
    now.utc += std::chrono::seconds(static_cast<int>(random() % 2'000'000) - 1'000'000);
    state = read(bytes, now);
    REQUIRE(state.until == kStart + 600s);
  }
}

TEST_CASE("record: no cooldown is longer than the rules allow, but an operator's is as ordered") {
  const std::string bytes = encode_host(open_for(600s), kNow);
  CHECK(read(bytes, kNow, 300s).until == kStart + 300s);
  CHECK(read(bytes, kNow, 900s).until == kStart + 600s);
  CHECK(read(bytes, kNow, 0s).until == kStart);
  CHECK(read(bytes, kNow, -5s).until == kStart);
  CHECK(read(bytes, kNow, Duration::max()).until == kStart + 600s);
  const std::string ordered = encode_host(open_for(600h, Cause::operator_act), kNow);
  CHECK(read(ordered, kNow, 300s).until == kStart + 600h);
}

TEST_CASE("record: a probe's lease ends too, whatever became of the clock") {
  HostState state = open_for(0s);
  state.phase = Phase::half_open;
  state.leases = {{1, kStart + 31s}};
  const std::string bytes = encode_host(state, kNow);
  const ClockPair now = later(-99h, -1000h, 7);
  CHECK(read(bytes, now).leases[0].expires == now.mono + 31s);
  CHECK(read(bytes, now, 10s).leases[0].expires == now.mono + 10s);
}

TEST_CASE("record: the past stays past when the wall clock went back between boots") {
  const std::string bytes = encode_host(full_state(), kNow);
  const ClockPair now = later(-99h, -1000h, 7);
  const HostState state = read(bytes, now);
  CHECK(state.opened_at <= now.mono);
  CHECK(state.closed_at <= now.mono);
  CHECK(state.calm_since <= now.mono);
  for (const Instant failure : state.window) CHECK(failure <= now.mono);
}

TEST_CASE("record: an earlier version's, with fewer fields, has defaults for the others") {
  const HostState full = full_state();
  const std::string record = encode_host(full, kNow);
  WireReader all(fields_of(record));
  std::vector<WireField> fields;
  while (const auto field = next_field(all)) fields.push_back(*field);
  REQUIRE(fields.size() == 60);
  for (const WireField& left_out : fields) {
    CAPTURE(static_cast<int>(left_out.tag));
    WireWriter writer;
    for (const WireField& field : fields)
      if (field.tag != left_out.tag) put_field(writer, field.tag, field.bytes);
    const HostState state = read(seal({'H', 1, 1}, writer.bytes()), kNow, Duration::max());
    if (left_out.tag > 3) {
      CHECK(state != full);  // that field, and no other, is as in a fresh state
      CHECK(encode_host(state, kNow).size() + left_out.bytes.size() + 3 == record.size());
    }
  }
  CHECK(read(seal({'H', 1, 1}, ""), kNow) == HostState{});
}

TEST_CASE("record: a later version's, with more fields, is read") {
  const std::string record = encode_host(full_state(), kNow);
  WireWriter more;
  put_field(more, 200, "what nobody here knows");
  more.text(fields_of(record));
  put_field(more, 255, std::string(60'000, 'x'));
  CHECK(read(seal({'H', 9, 1}, more.bytes()), kNow) == full_state());
  CHECK(decode_host(seal({'H', 9, 2}, more.bytes()), kNow, 1h).error() ==
        "the record needs version 2 of its reader");
}

TEST_CASE("record: what does not fit is refused, or is shut all the same") {
  struct Row {
    const char* name;
    std::uint8_t tag;
    std::string bytes, problem;
  };
  const Row rows[] = {
      {"a phase of later", 4, std::string("\x03"), "the record's fields do not fit"},
      {"a wider number", 6, std::string(4, '\x01'), "the record's fields do not fit"},
      {"a narrower time", 8, std::string(4, '\x01'), "the record's fields do not fit"},
      {"a cause of later", 5, std::string("\x63"), ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    WireWriter writer;
    const std::string record_bytes = encode_host(open_for(60s), kNow);
    writer.text(fields_of(record_bytes));
    put_field(writer, row.tag, row.bytes);
    const auto record = decode_host(seal({'H', 1, 1}, writer.bytes()), kNow, 1h);
    if (row.problem.empty()) {
      REQUIRE(record);
      CHECK(phase_at(record->state, kNow.mono) == Phase::open);
    } else {
      REQUIRE(!record);
      CHECK(record.error() == row.problem);
    }
  }
  CHECK(decode_host(seal({'H', 1, 1}, "\x04"), kNow, 1h).error() ==
        "the record's fields do not fit");
  CHECK(decode_host(seal({'C', 1, 1}, ""), kNow, 1h).error() == "the record is of another kind");
  CHECK(decode_host("", kNow, 1h).error() == "the record is too short");
}

TEST_CASE("record: texts and lists keep to their bounds in both directions") {
  HostState state = full_state();
  state.reason = std::string(5000, 'r');
  state.said = std::string(5000, 's');
  state.window.clear();
  for (int i = 0; i < 500; ++i) state.window.push_back(kStart - 500s + std::chrono::seconds(i));
  state.leases.clear();
  for (std::uint64_t i = 1; i <= 500; ++i) state.leases.push_back({i, kStart + 5s});
  const HostState back = read(encode_host(state, kNow), kNow);
  CHECK(back.reason.size() == HostState::max_reason);
  CHECK(back.said.size() == HostState::max_said);
  REQUIRE(back.window.size() == HostState::max_window);
  CHECK(back.window.back() == state.window.back());  // the newest are kept
  REQUIRE(back.leases.size() == HostState::max_leases);
  CHECK(back.leases.back() == state.leases.back());
}

TEST_CASE("record: extreme times neither overflow nor shut for ever") {
  const Instant ends[] = {Instant::min(), Instant::max(), Instant{-1us}, Instant{1us}};
  const UtcTime dates[] = {UtcTime::min(), UtcTime::max(), UtcTime{}, kNoon};
  for (const Instant mono : ends) {
    for (const UtcTime utc : dates) {
      HostState state = open_for(0s);
      state.until = Instant::max();
      state.opened_at = Instant::min();
      const std::string bytes = encode_host(state, {mono, utc, kBoot});
      for (const std::uint64_t boot : {kBoot, std::uint64_t{7}}) {
        const HostState back = read(bytes, {kStart, kNoon, boot}, 1h);
        CHECK(back.until <= kStart + 1h);
        CHECK(back.opened_at <= kStart);
      }
    }
  }
}

// The bytes of a release: readable for ever. Never change them; add others beside them.
TEST_CASE("record: bytes that version 1 wrote") {
  constexpr std::string_view hex =
      "4801010108000030f07dd24c06000208000010acd1530000000308002a00000000000000"
      "0401000105010001060200ad0108080040cc6180d24c06000b080001000000000000000c"
      "040001000000180900736c6f7720646f776e230800050000000000000024b69c94";
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  HostState state = open_for(41s);
  state.status = 429;
  state.level = 1;
  state.said = "slow down";
  state.version = 5;
  CHECK(read(bytes, kNow) == state);
}
