#include "proxy/access_log.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

using namespace sluice;

namespace {

AccessEntry example() {
  AccessEntry entry;
  entry.id = 17;
  entry.client = "127.0.0.1";
  entry.user = "nightly";
  entry.method = "GET";
  entry.host = "api.test:8080";
  entry.path = "/v1/things";
  entry.status = 200;
  entry.received = 0;
  entry.sent = 1234;
  entry.to_first_byte = 1500us;
  entry.total = 2250us;
  return entry;
}

}  // namespace

TEST_CASE("access log: a line of text") {
  AccessEntry entry = example();
  CHECK(format_text(entry) ==
        "17 127.0.0.1 nightly GET api.test:8080 /v1/things 200 0B/1234B 1.5ms 2.2ms -");
  entry.user.clear();
  entry.path.clear();
  entry.status = 503;
  entry.reason = "breaker-open";
  CHECK(format_text(entry) ==
        "17 127.0.0.1 - GET api.test:8080 - 503 0B/1234B 1.5ms 2.2ms breaker-open");
}

TEST_CASE("access log: a line of JSON") {
  AccessEntry entry = example();
  entry.reason = "client-left";
  CHECK(format_json(entry) ==
        R"({"id":17,"client":"127.0.0.1","user":"nightly","method":"GET","host":"api.test:8080",)"
        R"("path":"/v1/things","status":200,"received":0,"sent":1234,"first_byte_ms":1.5,)"
        R"("total_ms":2.25,"reason":"client-left"})");
}

TEST_CASE("access log: what a client sent cannot forge a line or reach a terminal") {
  AccessEntry entry = example();
  entry.user = "a b\n\"\x1b[31m";
  entry.path = "/x\r\n18 10.0.0.1";
  entry.host = "h\xc3\xbc";
  const std::string text = format_text(entry);
  CHECK(text == "17 127.0.0.1 a?b???[31m GET h?? /x??18?10.0.0.1 200 0B/1234B 1.5ms 2.2ms -");
  const std::string json = format_json(entry);
  CHECK(json.find('\n') == std::string::npos);
  CHECK(json.find('\x1b') == std::string::npos);
  CHECK(nlohmann::json::parse(json)["path"] == "/x\r\n18 10.0.0.1");
  entry.path = "/\xff";
  CHECK_FALSE(nlohmann::json::parse(format_json(entry), nullptr, false).is_discarded());
}
