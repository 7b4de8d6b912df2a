#include "policy/classify.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "policy/host_state.h"

using namespace sluice;

namespace {

using Kind = OutcomeKind;
using Fields = std::vector<FieldView>;
constexpr UtcTime now{1773309570s};

Classifier classifier(const ClassifyRules& rules = {}) {
  auto made = Classifier::make(rules, builtin_body_markers());
  REQUIRE(made);
  return *made;
}

// Head and body, the body byte by byte.
Outcome judge(const Classifier& classifier, std::uint16_t status, const Fields& fields,
              std::string_view body, std::string_view type = "text/html; charset=utf-8") {
  Outcome outcome = classifier.head(status, fields, now);
  MarkerScan scan = classifier.scan(status, type);
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (const auto marker = scan.feed(body.substr(i, 1))) return classifier.body(outcome, *marker);
  }
  return outcome;
}

}  // namespace

TEST_CASE("classify: what a status means by itself") {
  const auto judge_status = [c = classifier()](std::uint16_t s) {
    return c.head(s, Fields{}, now).kind;
  };
  for (int s : {200, 201, 202, 204, 206, 301, 302, 304}) CHECK(judge_status(s) == Kind::success);
  for (int s : {400, 401, 403, 404, 405, 410, 418, 422, 451, 501})
    CHECK(judge_status(s) == Kind::neutral);
  for (int s : {408, 500, 502, 503, 504, 529}) CHECK(judge_status(s) == Kind::server_error);
  CHECK(judge_status(429) == Kind::rate_limited);
  CHECK(judge_status(402) == Kind::rate_limited);
  CHECK(judge_status(999) == Kind::neutral);
}

TEST_CASE("classify: heads") {
  struct Row {
    const char* name;
    std::uint16_t status;
    Fields fields;
    Kind kind;
    std::optional<Duration> wait;
    const char* said;
  };
  const Row rows[] = {
      {"429 with a time", 429, {{"Retry-After", "30"}}, Kind::rate_limited, 30s, "Retry-After: 30"},
      {"503 alone", 503, {}, Kind::server_error, {}, ""},
      {"503 with a time", 503, {{"Retry-After", "2"}}, Kind::rate_limited, 2s, "Retry-After: 2"},
      {"503 with junk",
       503,
       {{"Retry-After", "soon"}},
       Kind::server_error,
       {},
       "Retry-After: soon"},
      {"403, quota used up",
       403,
       {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "5"}},
       Kind::rate_limited,
       5s,
       "x-ratelimit-remaining: 0; x-ratelimit-reset: 5"},
      {"403, quota left",
       403,
       {{"x-ratelimit-remaining", "1"}, {"x-ratelimit-reset", "5"}},
       Kind::neutral,
       {},
       ""},
      {"403 with only a time", 403, {{"Retry-After", "30"}}, Kind::neutral, {}, ""},
      {"404, quota used up", 404, {{"x-ratelimit-remaining", "0"}}, Kind::neutral, {}, ""},
      {"200, quota used up", 200, {{"x-ratelimit-remaining", "0"}}, Kind::success, {}, ""},
      {"529 is overload", 529, {{"retry-after", "7"}}, Kind::server_error, 7s, "retry-after: 7"},
      {"Cloudflare",
       403,
       {{"Cf-Mitigated", "challenge"}},
       Kind::anti_bot,
       {},
       "cf-mitigated: challenge"},
      {"AWS WAF challenge",
       202,
       {{"x-amzn-waf-action", "challenge"}},
       Kind::anti_bot,
       {},
       "x-amzn-waf-action: challenge"},
      {"AWS WAF captcha",
       405,
       {{"x-amzn-waf-action", "captcha"}},
       Kind::anti_bot,
       {},
       "x-amzn-waf-action: captcha"},
      {"AWS WAF with another status",
       200,
       {{"x-amzn-waf-action", "captcha"}},
       Kind::success,
       {},
       ""},
      {"DataDome",
       403,
       {{"X-DD-B", "1"}, {"X-DataDome", "protected"}},
       Kind::anti_bot,
       {},
       "x-dd-b"},
      {"DataDome, only protected", 200, {{"X-DataDome", "protected"}}, Kind::success, {}, ""},
      {"DataDome, 403 only protected", 403, {{"X-DataDome", "protected"}}, Kind::neutral, {}, ""},
      {"Kasada", 429, {{"x-kpsdk-ct", "abc"}}, Kind::anti_bot, {}, "x-kpsdk-ct"},
      {"Kasada's field on success", 200, {{"x-kpsdk-ct", "abc"}}, Kind::success, {}, ""},
      {"Google",
       302,
       {{"Location", "https://www.google.com/sorry/index?q=1"}},
       Kind::anti_bot,
       {},
       "location: /sorry/"},
      {"Akamai's cookies", 403, {{"Set-Cookie", "_abck=1; bm_sv=2"}}, Kind::neutral, {}, ""},
      {"a CSP that names a CAPTCHA",
       403,
       {{"Content-Security-Policy", "script-src challenge /sorry/ g-recaptcha px-captcha"}},
       Kind::neutral,
       {},
       ""},
  };
  const Classifier c = classifier();
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Outcome outcome = c.head(row.status, row.fields, now);
    CHECK(outcome.kind == row.kind);
    CHECK(outcome.status == row.status);
    CHECK(outcome.wait == row.wait);
    CHECK(outcome.said == row.said);
  }
}

TEST_CASE("classify: bodies") {
  struct Row {
    const char* name;
    std::uint16_t status;
    const char* body;
    Kind kind;
  };
  const Row rows[] = {
      {"YouTube", 200, "Sign in to confirm you're not a bot", Kind::anti_bot},
      {"YouTube, typeset", 200, "Sign in to confirm you\xE2\x80\x99re not a bot", Kind::anti_bot},
      {"YouTube, JSON", 200, R"({"reason":"Sign in to confirm you\u2019re not a bot"})",
       Kind::anti_bot},
      {"YouTube, HTML", 200, "confirm that you&#39;re not a bot", Kind::anti_bot},
      {"YouTube, status", 200, R"({"playabilityStatus":{"status":"LOGIN_REQUIRED"}})",
       Kind::anti_bot},
      {"YouTube, status, spaced", 200, R"({"playabilityStatus": {"status": "LOGIN_REQUIRED"}})",
       Kind::anti_bot},
      {"YouTube, status, 429", 429, R"({"status":"LOGIN_REQUIRED"})", Kind::anti_bot},
      {"OpenID Connect", 400, R"({"error":"login_required"})", Kind::neutral},
      {"OpenID Connect, in a page that works", 200, "redirect#error=login_required", Kind::success},
      {"a bank that wants a login", 400, R"({"error_code":"ITEM_LOGIN_REQUIRED"})", Kind::neutral},
      {"an API that wants a login", 401, R"({"status":"login_required"})", Kind::neutral},
      {"its documentation", 200, "<code>LOGIN_REQUIRED</code> means that", Kind::success},
      {"Google", 429, "unusual traffic from your computer network", Kind::anti_bot},
      {"Cloudflare", 503, "window._cf_chl_opt = {}", Kind::anti_bot},
      {"Cloudflare, title", 403, "<TITLE>Just a moment...</TITLE>", Kind::anti_bot},
      {"Cloudflare, script", 403, "<script src=/cdn-cgi/challenge-platform/h/b>", Kind::anti_bot},
      {"Cloudflare's script on a page that works", 200, "/cdn-cgi/challenge-platform/",
       Kind::success},
      {"Cloudflare, title, 503", 503, "<title>Just a moment...</title>", Kind::anti_bot},
      {"HUMAN", 429, "<div id=px-captcha>", Kind::anti_bot},
      {"HUMAN, 403", 403, "<div id=px-captcha>", Kind::anti_bot},
      {"reCAPTCHA, 429", 429, "class=g-recaptcha", Kind::anti_bot},
      {"reCAPTCHA, 503", 503, "class=g-recaptcha", Kind::anti_bot},
      {"hCaptcha, 429", 429, "class=h-captcha", Kind::anti_bot},
      {"Turnstile, 503", 503, "class=cf-turnstile", Kind::anti_bot},
      {"an ordinary 429", 429, "slow down", Kind::rate_limited},
      {"an ordinary 503", 503, "busy", Kind::server_error},
      {"Akamai", 403, "<H1>Access Denied</H1> Reference&#32;&#35;18.2f", Kind::anti_bot},
      {"S3, not Akamai", 403, "<Message>Access Denied</Message>", Kind::neutral},
      {"Imperva", 403, "/_Incapsula_Resource?SWJIYLWA", Kind::anti_bot},
      {"reCAPTCHA on a block", 403, "class=g-recaptcha", Kind::anti_bot},
      {"reCAPTCHA on a form", 200, "class=g-recaptcha", Kind::success},
      {"reCAPTCHA on a missing page", 404, "class=g-recaptcha", Kind::neutral},
      {"hCaptcha", 403, "class=h-captcha", Kind::anti_bot},
      {"Turnstile", 403, "class=cf-turnstile", Kind::anti_bot},
      {"GitHub", 403, "You have exceeded a secondary rate limit.", Kind::rate_limited},
      {"an ordinary 403", 403, "no such key", Kind::neutral},
  };
  const Classifier c = classifier();
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(judge(c, row.status, {}, row.body).kind == row.kind);
    CHECK(judge(c, row.status, {}, row.body, "image/png").kind != Kind::anti_bot);
  }
}

TEST_CASE("classify: out of money") {
  const Classifier c = classifier();
  CHECK(judge(c, 402, {}, "").no_credit);
  const auto usage = judge(c, 400, {},
                           "You have reached your specified API usage limits. You will regain "
                           "access on 2026-04-01 at 00:00 UTC.");
  CHECK(usage.kind == Kind::rate_limited);
  CHECK(usage.no_credit);
  CHECK(judge(c, 400, {}, "regain access on").kind == Kind::neutral);
  CHECK_FALSE(judge(c, 429, {}, "").no_credit);
  ClassifyRules paid;
  paid.rate_limited = {402, 429};  // this policy says that 402 is an ordinary rate
  CHECK_FALSE(judge(classifier(paid), 402, {}, "").no_credit);
}

TEST_CASE("classify: a body turns the head's time into a wait") {
  const auto outcome = judge(classifier(), 403, {{"retry-after", "60"}}, "secondary rate limit");
  CHECK(outcome.wait == Duration(60s));
  CHECK(outcome.said == "secondary rate limit");
}

TEST_CASE("classify: a policy's own statuses and markers") {
  ClassifyRules rules;
  rules.rate_limited = {420};
  rules.server_error = {};
  rules.markers = {{Marker::Place::body, "", "Go Away", {200}},
                   {Marker::Place::header, "X-Blocked", "", {}},
                   {Marker::Place::header, "x-verdict", "Robot", {}},
                   {Marker::Place::location, "", "/Captcha", {}}};
  const Classifier c = classifier(rules);
  CHECK(judge(c, 420, {}, "").kind == Kind::rate_limited);
  CHECK(judge(c, 429, {}, "").kind == Kind::neutral);
  CHECK(judge(c, 500, {}, "").kind == Kind::neutral);
  CHECK(judge(c, 200, {}, "please go away now").kind == Kind::anti_bot);
  CHECK(judge(c, 404, {}, "please go away now").kind == Kind::neutral);
  CHECK(judge(c, 200, {}, "confirm you're not a bot").kind ==
        Kind::anti_bot);  // built-in ones stay
  CHECK(judge(c, 200, {{"x-blocked", "yes"}}, "").kind == Kind::anti_bot);
  CHECK(judge(c, 200, {{"X-Verdict", "a robot it is"}}, "").kind == Kind::anti_bot);
  CHECK(judge(c, 200, {{"X-Verdict", "human"}}, "").kind == Kind::success);
  CHECK(judge(c, 307, {{"Location", "/captcha?u=1"}}, "").kind == Kind::anti_bot);
  rules.scan = 4;
  CHECK(judge(classifier(rules), 200, {}, "Go Away").kind == Kind::success);
  rules.scan = 0;
  CHECK(classifier(rules).scan(200, "text/html").done());
}

TEST_CASE("classify: what is text") {
  for (const char* type :
       {"", "text/html", "TEXT/HTML; charset=x", "application/json", " application/problem+json",
        "application/xml", "image/svg+xml", "application/javascript"}) {
    CAPTURE(type);
    CHECK(is_textual(type));
  }
  for (const char* type :
       {"image/png", "application/octet-stream", "video/mp4", "application/pdf", "json"}) {
    CAPTURE(type);
    CHECK_FALSE(is_textual(type));
  }
}

TEST_CASE("classify: what was said stays short and printable") {
  const std::string long_value(3000, 'x');
  const auto outcome = classifier().head(
      429, Fields{{"Retry-After", "\x1b[31m5\r\n\xff"}, {"x-ratelimit-reset", long_value}}, now);
  CHECK(outcome.said.size() == HostState::max_said);
  CHECK(outcome.said.starts_with("Retry-After:  [31m5   ; x-ratelimit-reset: xxx"));
}
