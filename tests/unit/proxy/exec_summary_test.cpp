#include "proxy/cli/exec_summary.h"

#include <doctest/doctest.h>

using namespace sluice;

TEST_CASE("exec: what a run did, in one line") {
  JobState state;
  CHECK(run_summary("sh-7", state, "USD") ==
        "job sh-7: 0 requests, 0 held, 0 refused, waited 0 s, cost 0.00 USD");
  state.requests = 1;
  state.held = 3;
  state.refused = 2;
  state.waited = 12s;
  state.cost = 420'000;
  CHECK(run_summary("crawl", state, "EUR") ==
        "job crawl: 1 request, 3 held, 2 refused, waited 12 s, cost 0.42 EUR");
}
