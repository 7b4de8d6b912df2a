#include "proxy/refusal.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

using namespace sluice;

namespace {

Refusal cooling() {
  Refusal refusal{503, "breaker-open", "connection_limit_reached",
                  "a.test is cooling down: 41 s left"};
  refusal.host = "a.test";
  refusal.retry_after_s = 41;
  return refusal;
}

struct Reply {
  std::string head, body;
  bool has(const std::string& line) const {
    return head.find("\r\n" + line + "\r\n") != std::string::npos;
  }
  bool has_field(const std::string& name) const {
    return head.find("\r\n" + name + ": ") != std::string::npos;
  }
};

ReplyOptions as(ReplyFormat format) {
  ReplyOptions options;
  options.format = format;
  return options;
}

Reply rendered(const Refusal& refusal, ReplyOptions options = {}) {
  options.date = "Thu, 12 Mar 2026 09:59:30 GMT";
  const std::string bytes = render(refusal, options);
  const auto end = bytes.find("\r\n\r\n");
  REQUIRE(end != std::string::npos);
  return {bytes.substr(0, end + 2), bytes.substr(end + 4)};
}

ReplyFormat asked_by(std::string_view accept) {
  Head head;
  head.fields.push_back({"Accept", accept, FieldName::accept});
  return preferred_format(head);
}

}  // namespace

TEST_CASE("refusal: the head that every one has") {
  const Reply reply = rendered(cooling());
  CHECK(reply.head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
  CHECK(reply.has("Content-Type: application/problem+json"));
  CHECK(reply.has("Content-Length: " + std::to_string(reply.body.size())));
  CHECK(reply.has("Date: Thu, 12 Mar 2026 09:59:30 GMT"));
  CHECK(reply.has("Cache-Control: no-store"));
  CHECK(
      reply.has("Proxy-Status: sluice; error=connection_limit_reached; "
                "details=\"a.test is cooling down: 41 s left\""));
  CHECK(reply.has("Sluice-Reason: breaker-open"));
  CHECK(reply.has("Retry-After: 41"));
  CHECK_FALSE(reply.has_field("Connection"));
  CHECK_FALSE(reply.has_field("Proxy-Authenticate"));
}

TEST_CASE("refusal: what some have") {
  Refusal refusal{407, "auth-required", "http_request_denied", "who are you"};
  refusal.challenge = "Basic realm=\"sluice\"";
  ReplyOptions options;
  options.close = true;
  const Reply reply = rendered(refusal, options);
  CHECK(reply.head.starts_with("HTTP/1.1 407 Proxy Authentication Required\r\n"));
  CHECK(reply.has("Proxy-Authenticate: Basic realm=\"sluice\""));
  CHECK(reply.has("Connection: close"));
  CHECK_FALSE(reply.has_field("Retry-After"));  // nothing is known: nothing is told, never 0
}

TEST_CASE("refusal: the answer to HEAD tells the length and sends no body") {
  const Reply whole = rendered(cooling());
  ReplyOptions options;
  options.head_only = true;
  const Reply head = rendered(cooling(), options);
  CHECK(head.body.empty());
  CHECK(head.head == whole.head);
}

TEST_CASE("refusal: problem+json") {
  const auto body = nlohmann::json::parse(rendered(cooling()).body);
  CHECK(body["title"] == "Service Unavailable");
  CHECK(body["status"] == 503);
  CHECK(body["detail"] == "a.test is cooling down: 41 s left");
  CHECK(body["host"] == "a.test");
  CHECK(body["reason"] == "breaker-open");
  CHECK(body["retry_after_s"] == 41);

  const auto bare =
      nlohmann::json::parse(rendered({502, "dns", "dns_error", "there is no such name"}).body);
  CHECK_FALSE(bare.contains("host"));
  CHECK_FALSE(bare.contains("retry_after_s"));
}

TEST_CASE("refusal: whose state refuses, until when, and what lifts it") {
  Refusal refusal = cooling();
  refusal.key = "a.test";
  refusal.policy = "example";
  refusal.state = "open";
  refusal.until = "2026-03-12T10:02:11Z";
  refusal.override_command = "sluice close <a.test>";
  const auto body = nlohmann::json::parse(rendered(refusal).body);
  CHECK(body["key"] == "a.test");
  CHECK(body["policy"] == "example");
  CHECK(body["state"] == "open");
  CHECK(body["until"] == "2026-03-12T10:02:11Z");
  CHECK(body["override"] == "sluice close <a.test>");
  CHECK(rendered(refusal, as(ReplyFormat::text)).body.find("sluice close <a.test>\n") !=
        std::string::npos);
  CHECK(rendered(refusal, as(ReplyFormat::html)).body.find("sluice close &lt;a.test&gt;") !=
        std::string::npos);
  CHECK_FALSE(rendered(refusal).has_field("X-Should-Retry"));

  refusal.hopeless = true;
  CHECK(rendered(refusal).has("X-Should-Retry: false"));
}

TEST_CASE("refusal: text and HTML") {
  const Reply text = rendered(cooling(), as(ReplyFormat::text));
  CHECK(text.has("Content-Type: text/plain; charset=utf-8"));
  CHECK(text.body.find("503 Service Unavailable (breaker-open)\n") == 0);
  CHECK(text.body.find("a.test is cooling down: 41 s left\n") != std::string::npos);

  const Reply html = rendered(cooling(), as(ReplyFormat::html));
  CHECK(html.has("Content-Type: text/html; charset=utf-8"));
  CHECK(html.has("Content-Security-Policy: default-src 'none'"));
  CHECK(html.has("X-Content-Type-Options: nosniff"));
  CHECK(html.body.find("<h1>503 Service Unavailable</h1>") != std::string::npos);
  CHECK(html.body.find("a.test is cooling down: 41 s left") != std::string::npos);
  CHECK(html.body.find("breaker-open") != std::string::npos);
}

TEST_CASE("refusal: a detail made of somebody's bytes breaks out of nothing") {
  const std::string nasty =
      "</p><script>alert('1')</script>&\"\\\r\nX-Evil: yes\x01\x7f\xff\xc3\xbc";
  Refusal refusal{502, "dns", "dns_error", nasty};
  refusal.host = nasty;
  const Reply json = rendered(refusal);
  CHECK_FALSE(json.has_field("X-Evil"));
  CHECK(
      json.has("Proxy-Status: sluice; error=dns_error; "
               "details=\"</p><script>alert('1')</script>&\\\"\\\\??X-Evil: yes?????\""));
  CHECK_FALSE(nlohmann::json::parse(json.body, nullptr, false).is_discarded());
  const Reply html = rendered(refusal, as(ReplyFormat::html));
  CHECK(html.body.find("<script>") == std::string::npos);
  CHECK(html.body.find("&lt;/p&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;") !=
        std::string::npos);
  CHECK(html.has("Content-Length: " + std::to_string(html.body.size())));
}

TEST_CASE("refusal: the format that Accept prefers") {
  struct Row {
    std::string accept;
    ReplyFormat format;
  };
  const Row rows[] = {
      {"", ReplyFormat::json},
      {"*/*", ReplyFormat::json},
      {"application/json", ReplyFormat::json},
      {"application/problem+json", ReplyFormat::json},
      {"image/png", ReplyFormat::json},
      {"text/plain", ReplyFormat::text},
      {"TEXT/PLAIN; charset=x", ReplyFormat::text},
      {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", ReplyFormat::html},
      {"image/png, text/html", ReplyFormat::html},
      {"application/json, text/plain, */*", ReplyFormat::json},
      {"text/plain, application/json", ReplyFormat::text},
      {"text/plain;q=0.5, application/json", ReplyFormat::json},
      {"application/json;q=0.1, text/html;q=0.25", ReplyFormat::html},
      {"text/html;q=0, */*", ReplyFormat::json},
      {"text/html; level=1; q=0.4, text/plain;q=0.41", ReplyFormat::text},
      {"text/html;q=junk", ReplyFormat::html},
  };
  for (const Row& row : rows) {
    CAPTURE(row.accept);
    CHECK(asked_by(row.accept) == row.format);
  }
  CHECK(preferred_format(Head{}) == ReplyFormat::json);
}

TEST_CASE("refusal: every status it is used with has a phrase") {
  for (const std::uint16_t status :
       {200, 400, 403, 407, 408, 413, 414, 429, 431, 501, 502, 503, 504, 505, 508}) {
    CAPTURE(status);
    CHECK(status_phrase(status) != "Error");
  }
  CHECK(status_phrase(599) == "Error");
}
