// How the breaker counts refusals where the pacer learns from them: those on their way together
// are one event, and those that are rare do not add up.
#include <doctest/doctest.h>

#include <string_view>

#include "policy/breaker.h"

using namespace sluice;

namespace {

constexpr Instant start{100h};

// Each letter an answer, one after another: 'n' refused, 'o' admitted. 'e' is a refusal of a
// request that went together with the one before it.
HostState after(std::string_view answers, const Rules& rules, std::optional<Duration> wait = {}) {
  HostState state;
  Instant now = start, sent = start;
  for (const char letter : answers) {
    if (letter != 'e') sent = now + 1ms;
    now += letter == 'e' ? 1ms : 100ms;
    const bool refused = letter != 'o';
    state = observe(rules, std::move(state), now,
                    {.kind = refused ? OutcomeKind::rate_limited : OutcomeKind::success,
                     .status = static_cast<std::uint16_t>(refused ? 429 : 200),
                     .wait = refused ? wait : std::nullopt,
                     .ticket = {.epoch = state.epoch},
                     .sent = sent},
                    0);
  }
  return state;
}

}  // namespace

TEST_CASE("breaker: which refusals add up") {
  struct Row {
    const char* name;
    std::string_view answers;
    bool opens;
  };
  const Row rows[] = {
      {"three of them open it", "nnn", true},
      {"also with successes between", "nononon", true},
      {"one in five is too many", "nooonooon", true},
      {"those that went together are one", "neeeeeeee", false},
      {"but not the next ones", "neeeneeen", true},
      {"rare ones are what finding a limit costs", "noooooonooooooon", false},
      {"the first few of a busy host count no more", "nnoooooooooooooooooooon", false},
      {"rare ones that become many", "noooooonooooooonnnn", true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK((after(row.answers, {}).phase == Phase::open) == row.opens);
  }
}

TEST_CASE("breaker: without a learning pacer every three refusals open it") {
  Rules rules;
  rules.pace.adapt = Adapt::linear;
  CHECK(after("noooooonooooooon", rules).phase == Phase::open);
}

TEST_CASE("breaker: who names a time is always heard") {
  CHECK(after("oooooooooooooooooooon", {}, 30s).until == start + 2100ms + 30s);
  // The second came late, and its word is the newest.
  CHECK(after("ne", {}, 30s).until == start + 101ms + 30s);
}
