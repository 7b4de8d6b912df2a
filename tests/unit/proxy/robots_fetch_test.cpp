#include "proxy/robots/robots_fetch.h"

#include <doctest/doctest.h>

#include <string_view>

using namespace sluice;

TEST_CASE("robots fetch: for how long an answer is believed") {
  struct Row {
    std::string_view cache_control;
    std::uint16_t status;
    Duration keep;
  };
  const Row rows[] = {
      {"", 200, 24h},  // RFC 9309 §2.4
      {"max-age=3600", 200, 1h},
      {"public, Max-Age=3600", 200, 1h},
      {"max-age=1", 200, 5min},  // no origin is asked more often
      {"max-age=0", 200, 5min},
      {"max-age=99999999", 200, 24h},
      {"max-age=soon", 200, 24h},
      {"no-store", 200, 5min},
      {"no-cache", 200, 5min},
      {"", 404, 24h},
      {"max-age=3600", 404, 1h},
      {"", 503, 5min},
      {"max-age=3600", 500, 5min},
  };
  for (const Row& row : rows) {
    CAPTURE(row.cache_control);
    CAPTURE(row.status);
    Head answer;
    answer.status = row.status;
    if (!row.cache_control.empty())
      answer.fields.push_back({.name = "Cache-Control", .value = row.cache_control});
    CHECK(robots_keep(answer) == row.keep);
  }
}
