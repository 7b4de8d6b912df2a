// Habits: what a key has learned about itself after days of one kind or another.
#include "policy/usual_rate.h"

#include <doctest/doctest.h>

#include <limits>

using namespace sluice;

namespace {

constexpr UtcTime midnight{480'000h};

// One busy hour a day, `rate` a minute.
UsualRate nightly(int days, int hour, std::uint32_t rate, int every = 1) {
  UsualRate usual;
  for (int day = 0; day < days; day += every) {
    note_rate(usual, midnight + 24h * day + hour * 1h, rate);
  }
  return usual;
}

}  // namespace

TEST_CASE("usual rate: nothing is known of a fresh key") {
  const UsualRate usual;
  CHECK(usual_rate(usual, midnight) == 0);
  CHECK(known_for(usual, midnight) == Duration(0));
}

TEST_CASE("usual rate: an hour is known after some days, with its neighbours, others for half") {
  UsualRate usual = nightly(8, 2, 200);
  const UtcTime next = midnight + 24h * 8;
  note_rate(usual, next, 0);  // the last night is over
  CHECK(usual_rate(usual, next + 2h) > 150);
  CHECK(usual_rate(usual, next + 1h) == usual_rate(usual, next + 2h));
  CHECK(usual_rate(usual, next + 3h + 59min) == usual_rate(usual, next + 2h));
  CHECK(usual_rate(usual, next + 14h) == usual_rate(usual, next + 2h) / 2);
  CHECK(known_for(usual, next) == 24h * 8 - 2h);
}

TEST_CASE("usual rate: a weekly job is not forgotten within a week, and is within months") {
  UsualRate usual = nightly(56, 2, 200, 7);
  note_rate(usual, midnight + 24h * 56, 1);
  CHECK(usual_rate(usual, midnight + 24h * 56 + 2h) * 5 > 200);
  note_rate(usual, midnight + 24h * 356, 1);
  CHECK(usual_rate(usual, midnight + 24h * 356 + 2h) < 10);
}

TEST_CASE("usual rate: an hour in doubt teaches little") {
  UsualRate trusted, doubted;
  for (UsualRate* usual : {&trusted, &doubted}) {
    note_rate(*usual, midnight, 800);
    usual->doubtful = usual == &doubted ? 1 : 0;
    note_rate(*usual, midnight + 1h, 0);
  }
  CHECK(usual_rate(trusted, midnight) == 400);
  CHECK(usual_rate(doubted, midnight) == 100);
  CHECK(doubted.doubtful == 0);
}

TEST_CASE("usual rate: clocks that jump, and records of nobody's making, do no harm") {
  UsualRate usual = nightly(3, 2, 100);
  note_rate(usual, midnight - 24h, 5);
  CHECK(known_for(usual, midnight - 48h) == Duration(0));
  usual.hour = std::numeric_limits<std::int64_t>::max();
  note_rate(usual, midnight, 5);
  usual.hour = std::numeric_limits<std::int64_t>::min();
  note_rate(usual, midnight, 5);
  CHECK(usual.hour == 480'000);
  note_rate(usual, midnight, std::numeric_limits<std::uint32_t>::max());
  CHECK(usual.peak == std::numeric_limits<std::uint16_t>::max());
}

TEST_CASE("usual rate: what two processes saw is put together") {
  UsualRate one = nightly(3, 2, 100), other = nightly(4, 5, 60);
  const UsualRate both = joined(one, other);
  CHECK(both.hour == other.hour);
  CHECK(both.since == one.since);
  CHECK(usual_rate(both, midnight + 2h) >= 50);
  CHECK(joined(UsualRate{}, one) == one);
  CHECK(joined(one, UsualRate{}) == one);
}
