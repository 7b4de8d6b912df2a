#include "policy/signal.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "policy/dialects.h"
#include "policy/http_date.h"
#include "policy/units.h"

using namespace sluice;

namespace {

// 2026-03-12 09:59:30 UTC: the response's Date, half a minute before most examples' resets.
constexpr UtcTime date{1773309570s};
constexpr const char* date_text = "Thu, 12 Mar 2026 09:59:30 GMT";
// Our own clock is wrong by a day: nothing may depend on it while there is a Date.
constexpr UtcTime our_clock = date + 24h;

using Fields = std::vector<FieldView>;

Signal with_date(Fields fields) {
  fields.push_back({"Date", date_text});
  return read_signal(fields, our_clock);
}

}  // namespace

TEST_CASE("http date: three forms, one moment") {
  const UtcTime moment{784111777s};
  for (const char* text : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                           "Sun Nov  6 08:49:37 1994"}) {
    CAPTURE(text);
    CHECK(parse_http_date(text, date) == moment);
    CHECK_FALSE(parse_http_date(std::string(text) + "x", date));
    for (std::size_t n = 0; n < std::string_view(text).size(); ++n) {
      CHECK_FALSE(parse_http_date(std::string_view(text).substr(0, n), date));
    }
  }
}

TEST_CASE("http date: a two-digit year is at most 50 years ahead") {
  CHECK(parse_http_date("Monday, 01-Jan-76 00:00:00 GMT", date) == UtcTime(3345062400s));  // 2076
  CHECK(parse_http_date("Monday, 01-Jan-77 00:00:00 GMT", date) == UtcTime(220924800s));   // 1977
}

TEST_CASE("http date: what no calendar has") {
  for (const char* text :
       {"", ",", "Sun", "Sun, 31 Feb 2026 00:00:00 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun Nov 31 08:49:37 1994"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_http_date(text, date));
  }
}

TEST_CASE("ISO date: with and without seconds, fraction and zone") {
  struct Row {
    const char* text;
    Duration after;
  };
  const Row rows[] = {
      {"2026-03-12T10:00:00Z", 30s},        {"2026-03-12T10:00Z", 30s},
      {"2026-03-12T10:00:00.25Z", 30250ms}, {"2026-03-12T10:00:00.1234567Z", 30123456us},
      {"2026-03-12T11:00:00+01:00", 30s},   {"2026-03-12T04:30:00-0530", 30s},
      {"2026-03-12 10:00:00", 30s},         {"2026-03-12t10:00:00z", 30s},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(parse_iso_date(row.text) == date + row.after);
  }
  for (const char* text :
       {"2026-03-12", "2026-13-12T10:00:00Z", "2026-02-29T10:00:00Z", "2026-03-12T10:00:00Zz",
        "2026-03-12T10:00:00.Z", "2026-03-12T10:00:00+1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_iso_date(text));
  }
}

TEST_CASE("a reset value in all its forms") {
  struct Row {
    const char* text;
    Reset reset;
  };
  const Row rows[] = {
      {"120", {120s, false}},
      {" 120\t", {120s, false}},
      {"0", {0s, false}},
      {"2.0", {2s, false}},
      {"1.470", {1470ms, false}},
      {"1000000000", {kLongestDuration, false}},
      {"1773309600", {30s, true}},
      {"1773309600.5", {30500ms, true}},
      {"1773309600500", {30500ms, true}},
      {"1773309569", {0s, true}},  // a past time means now
      {"12ms", {12ms, false}},
      {"6m0s", {6min, false}},
      {"1h2m3.5s", {1h + 2min + 3500ms, false}},
      {"1d2h", {26h, false}},
      {"2026-03-12T10:00:00Z", {30s, true}},
      {"2026-03-12T10:00Z", {30s, true}},
      {"Thu, 12 Mar 2026 10:00:00 GMT", {30s, true}},
      {"Thu, 12 Mar 2026 09:00:00 GMT", {0s, true}},
      {"Thursday, 12-Mar-26 10:00:00 GMT", {30s, true}},
      {"Thu Mar 12 10:00:00 2026", {30s, true}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(read_reset(row.text, date) == row.reset);
  }
}

TEST_CASE("a reset value of any length: the longest there is") {
  for (const char* text :
       {"9999999999999999999", "18446744073709551616", "99999999999999999999999"}) {
    CAPTURE(text);
    REQUIRE(read_reset(text, date));
    CHECK(read_reset(text, date)->wait == kLongestDuration);
  }
}

TEST_CASE("a reset value that is none: unknown, never now") {
  for (const char* text :
       {"",   " ",  "-1", "-5s",   "+5",  "1e3", "0x10",     "soon", "5 s",   "1m-2s",
        "5x", ".5", "5.", "1.2.3", "NaN", "inf", "\xff\xff", "1,5",  "12ms;", "ms"}) {
    CAPTURE(text);
    CHECK_FALSE(read_reset(text, date));
  }
}

TEST_CASE("Retry-After: the longest one, and junk is counted") {
  CHECK(with_date({{"Retry-After", "120"}}).retry_after == Duration(120s));
  CHECK(with_date({{"retry-after", "Thu, 12 Mar 2026 10:00:00 GMT"}}).retry_after == Duration(30s));
  CHECK(with_date({{"RETRY-AFTER", "1"}, {"retry-after-ms", "1350"}}).retry_after ==
        Duration(1350ms));
  CHECK(with_date({{"x-ms-retry-after-ms", "250"}}).retry_after == Duration(250ms));
  const auto junk = with_date({{"Retry-After", "soon"}, {"Retry-After", "-3"}});
  CHECK_FALSE(junk.retry_after);
  CHECK(junk.junk == 2);
}

TEST_CASE("Retry-After: 0 is a second, so that nobody asks again at once") {
  CHECK(with_date({{"Retry-After", "0"}}).named_wait() == Duration(1s));
  CHECK(with_date({{"Retry-After", "Thu, 12 Mar 2026 09:00:00 GMT"}}).named_wait() == Duration(1s));
}

TEST_CASE("absolute times count from our clock only when there is no Date") {
  const Fields fields = {{"Retry-After", "Thu, 12 Mar 2026 10:00:00 GMT"}};
  CHECK(read_signal(fields, date).retry_after == Duration(30s));
  const Fields bad_date = {{"Date", "yesterday"}, fields[0]};
  CHECK(read_signal(bad_date, date - 10s).retry_after == Duration(40s));
}

TEST_CASE("dialects: how long each origin asks us to wait") {
  struct Row {
    const char* name;
    Fields fields;
    bool exhausted;
    std::optional<Duration> wait;
  };
  const Row rows[] = {
      {"RFC 9110", {{"Retry-After", "120"}}, false, 120s},
      {"RFC 9110, float", {{"Retry-After", "2.0"}}, false, 2s},
      {"IETF draft 10",
       {{"RateLimit-Policy", "\"burst\";q=100;w=60"}, {"RateLimit", "\"burst\";r=0;t=30"}},
       true,
       30s},
      {"IETF draft 10, something left", {{"RateLimit", "\"default\";r=50;t=30"}}, false, {}},
      {"IETF draft 10, two policies",
       {{"RateLimit", "\"a\";r=0;t=5, \"b\";r=0;t=50;pk=:c2VjcmV0:"}},
       true,
       50s},
      {"IETF draft 07", {{"RateLimit", "limit=100, remaining=0, reset=30"}}, true, 30s},
      {"IETF draft 06",
       {{"RateLimit-Limit", "100, 100;w=60"},
        {"RateLimit-Remaining", "0"},
        {"RateLimit-Reset", "30"}},
       true,
       30s},
      {"GitHub: reset + 1 s",
       {{"x-ratelimit-limit", "60"},
        {"x-ratelimit-remaining", "0"},
        {"x-ratelimit-reset", "1773309600"}},
       true,
       31s},
      {"GitHub secondary: the quota is not the reason",
       {{"x-ratelimit-remaining", "4211"}, {"x-ratelimit-reset", "1773309600"}},
       false,
       {}},
      {"GitHub: Retry-After overrides",
       {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1773309600"}, {"retry-after", "60"}},
       true,
       60s},
      {"OpenAI: the later one wins",
       {{"x-ratelimit-remaining-requests", "0"},
        {"x-ratelimit-reset-requests", "12ms"},
        {"x-ratelimit-remaining-tokens", "0"},
        {"x-ratelimit-reset-tokens", "6m0s"}},
       true,
       6min},
      {"OpenAI: only what is used up",
       {{"x-ratelimit-remaining-requests", "0"},
        {"x-ratelimit-reset-requests", "12ms"},
        {"x-ratelimit-remaining-tokens", "90"},
        {"x-ratelimit-reset-tokens", "6m0s"}},
       true,
       12ms},
      {"OpenAI: retry-after-ms", {{"retry-after-ms", "350"}}, false, 350ms},
      {"Azure OpenAI: negative is unknown, 0 says nothing",
       {{"x-ratelimit-remaining-tokens", "-1"}, {"x-ratelimit-reset-tokens", "0"}},
       false,
       {}},
      {"Anthropic",
       {{"anthropic-ratelimit-input-tokens-limit", "40000"},
        {"anthropic-ratelimit-input-tokens-remaining", "0"},
        {"anthropic-ratelimit-input-tokens-reset", "2026-03-12T10:00:00Z"},
        {"anthropic-ratelimit-requests-remaining", "49"},
        {"anthropic-ratelimit-requests-reset", "2026-03-12T10:30:00Z"}},
       true,
       31s},
      {"Discord: the delta before the date",
       {{"X-RateLimit-Remaining", "0"},
        {"X-RateLimit-Reset", "1773319999.123"},
        {"X-RateLimit-Reset-After", "1.470"}},
       true,
       1470ms},
      {"Reddit",
       {{"X-Ratelimit-Used", "600"},
        {"X-Ratelimit-Remaining", "0.0"},
        {"X-Ratelimit-Reset", "257"}},
       true,
       257s},
      {"X", {{"x-rate-limit-remaining", "0"}, {"x-rate-limit-reset", "1773309600"}}, true, 31s},
      {"Shopify", {{"X-Shopify-Shop-Api-Call-Limit", "40/40"}, {"Retry-After", "2.0"}}, true, 2s},
      {"Shopify, room left", {{"X-Shopify-Shop-Api-Call-Limit", "32/40"}}, false, {}},
      {"Atlassian",
       {{"RateLimit-Reason", "jira-burst-based"}, {"X-RateLimit-Reset", "2026-03-12T10:00Z"}},
       false,
       31s},
      {"Twitch: an epoch under the draft's name",
       {{"Ratelimit-Remaining", "0"}, {"Ratelimit-Reset", "1773309600"}},
       true,
       31s},
      {"HubSpot",
       {{"X-HubSpot-RateLimit-Daily-Remaining", "120000"},
        {"X-HubSpot-RateLimit-Secondly-Remaining", "0"}},
       true,
       {}},
      {"Azure ARM", {{"x-ms-ratelimit-remaining-subscription-reads", "11999"}}, false, {}},
      {"Azure ARM, used up",
       {{"x-ms-ratelimit-remaining-subscription-reads", "0"}, {"x-ms-retry-after-ms", "1500"}},
       true,
       1500ms},
      {"DeviantArt: nothing", {}, false, {}},
      {"a reset that is over",
       {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1773300000"}},
       true,
       1s},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Signal signal = with_date(row.fields);
    CHECK(signal.exhausted() == row.exhausted);
    CHECK(signal.named_wait() == row.wait);
  }
}

TEST_CASE("dialects: what is left is read whole") {
  const auto ietf = with_date(
      {{"RateLimit-Policy", "\"burst\";q=100;w=60"}, {"RateLimit", "\"burst\";r=50;t=30"}});
  REQUIRE(ietf.quota_count == 1);
  CHECK(ietf.quotas[0] == Quota{.dimension = name_hash("burst"),
                                .limit = 100,
                                .remaining = 50,
                                .reset = 30s,
                                .window = 60s});
  const auto shop = with_date({{"X-Shopify-Shop-Api-Call-Limit", "32/40"}});
  CHECK(shop.quotas[0].limit == 40u);
  CHECK(shop.quotas[0].remaining == 8u);

  const auto hubspot = with_date({{"X-HubSpot-RateLimit-Daily-Remaining", "120000"},
                                  {"X-HubSpot-RateLimit-Secondly-Remaining", "18"}});
  CHECK(hubspot.quota_count == 2);
}

TEST_CASE("dialects: whose limit, and whether to retry") {
  const auto discord =
      with_date({{"X-RateLimit-Bucket", "abcd1234"}, {"X-RateLimit-Global", "true"}});
  CHECK(discord.global);
  CHECK(discord.bucket == name_hash("abcd1234"));
  CHECK(with_date({{"X-RateLimit-Scope", "global"}}).global);
  CHECK_FALSE(with_date({{"X-RateLimit-Scope", "shared"}}).global);
  CHECK(with_date({{"x-should-retry", "true"}}).should_retry == true);
  CHECK(with_date({{"Stripe-Should-Retry", "false"}}).should_retry == false);
  CHECK_FALSE(with_date({{"x-should-retry", "perhaps"}}).should_retry);
}

TEST_CASE("malformed RateLimit fields are ignored whole") {
  for (const char* value :
       {"\"a\";r=x;t=30", "\"a", ";r=0", "\"a\" \"b\"", "\"a\";=3", "=", "\"a\";r=-1"}) {
    CAPTURE(value);
    const auto signal = with_date({{"RateLimit", value}});
    CHECK(signal.quota_count == 0);
    CHECK(signal.junk == 1);
  }
}

TEST_CASE("more quotas than we keep") {
  Fields fields;
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("x-ratelimit-remaining-" + std::to_string(i));
  for (const auto& name : names) fields.push_back({name, "5"});
  CHECK(with_date(fields).quota_count == Signal::max_quotas);
}

TEST_CASE("ordinary fields say nothing") {
  const Fields fields = {{"Content-Type", "text/html"},
                         {"X-Request-Id", "0"},
                         {"X-Powered-By", "x"},
                         {"Retry", "5"},
                         {"Ratelimits", "5"},
                         {"X-Rate", "5"},
                         {"", "5"}};
  CHECK(with_date(fields) == Signal{});
  for (const auto& field : fields) CHECK_FALSE(speaks_of_rates(field.name));
  for (const char* name :
       {"Retry-After", "ratelimit", "X-RateLimit-Reset", "stripe-should-retry"}) {
    CHECK(speaks_of_rates(name));
  }
}
