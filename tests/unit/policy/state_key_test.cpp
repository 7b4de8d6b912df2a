// Keys as they are stored, and as an operator types them.
#include "policy/state_key.h"

#include <doctest/doctest.h>

using namespace sluice;

TEST_CASE("key: how each scope names it") {
  struct Row {
    Scope scope;
    const char* host;
    std::uint16_t port;
    bool secure;
    const char *credential, *key;
  };
  const Row rows[] = {
      {Scope::host, "api.example.com", 443, true, "", "api.example.com"},
      {Scope::host, "api.example.com", 80, false, "", "api.example.com"},
      {Scope::host, "api.example.com", 443, false, "", "api.example.com:443"},
      {Scope::host, "api.example.com", 8080, false, "ignored", "api.example.com:8080"},
      {Scope::host, "::1", 80, false, "", "[::1]"},
      {Scope::host, "::1", 8080, false, "", "[::1]:8080"},
      {Scope::policy, "api.example.com", 8080, false, "", "policy/github"},
      {Scope::credential, "api.example.com", 443, true, "1f2e", "api.example.com#1f2e"},
      {Scope::credential, "api.example.com", 81, false, "1f2e", "api.example.com:81#1f2e"},
      {Scope::credential, "api.example.com", 443, true, "", "api.example.com"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.key);
    Policy policy;
    policy.name = "github";
    policy.scope = row.scope;
    std::string key;
    append_state_key(key, policy, row.host, row.port, row.secure, row.credential);
    CHECK(key == row.key);
    CHECK(*read_key(key) == key);  // what is shown can be typed
  }
}

TEST_CASE("key: what an operator types, in its one spelling") {
  const char* rows[][2] = {{"API.Example.com", "api.example.com"},
                           {"api.example.com.", "api.example.com"},
                           {"api.example.com:8080", "api.example.com:8080"},
                           {"::1", "[::1]"},
                           {"[::1]:8080", "[::1]:8080"},
                           {"policy/github", "policy/github"},
                           {"api.example.com#1f2e", "api.example.com#1f2e"}};
  for (const auto& row : rows) {
    CAPTURE(row[0]);
    const auto key = read_key(row[0]);
    REQUIRE(key);
    CHECK(*key == row[1]);
  }
  for (const char* bad : {"", "*", "*.example.com", "policy/", "policy/a b", "api.example.com#",
                          "#x", "https://api.example.com/", "a b", "api.example.com:0", "host\n"}) {
    CAPTURE(bad);
    const auto key = read_key(bad);
    REQUIRE(!key);
    CHECK(key.error() == "\"" + std::string(bad) +
                             "\" is no key: write a host, host:port or policy/NAME, as `sluice "
                             "status` shows them");
  }
}

TEST_CASE("key: a bare host means every key of that host, and no other") {
  struct Row {
    const char *argument, *key;
    bool matches;
  };
  const Row rows[] = {
      {"a.test", "a.test", true},           {"a.test", "a.test:8080", true},
      {"a.test", "a.test#1f", true},        {"a.test", "a.test:8080#1f", true},
      {"a.test", "a.tests", false},         {"a.test", "a.test.org", false},
      {"a.test", "b.a.test", false},        {"a.test:80", "a.test:8080", false},
      {"a.test:8080", "a.test:8080", true}, {"a.test:8080", "a.test:8080#1f", true},
      {"a.test:8080", "a.test", false},     {"a.test#1f", "a.test", false},
      {"a.test#1f", "a.test#1f", true},     {"a.test#1f", "a.test#1f2e", false},
      {"[::1]", "[::1]:8080", true},        {"[::1]", "[::1]", true},
      {"policy/x", "policy/x", true},       {"policy/x", "policy/xy", false},
      {"policy/x", "policy/x:1", false},    {"policy", "policy/x", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.argument);
    CAPTURE(row.key);
    CHECK(key_matches(row.argument, row.key) == row.matches);
  }
}
