#include "policy/policy_set.h"

#include <doctest/doctest.h>

#include <string>

using namespace sluice;

namespace {

PolicyFile file(const std::string& name, const std::string& text) {
  PolicyReading reading = read_policy(text, name + ".toml", Policy{});
  for (const Diagnostic& problem : reading.problems) FAIL(render(problem));
  return std::move(reading.read);
}

std::string add(PolicySet& set, const std::string& name, const std::string& text) {
  std::string out;
  for (const Diagnostic& problem : set.add(file(name, text))) out += render(problem);
  return out;
}

// "policy" or "policy/role".
std::string answer(const PolicySet& set, std::string_view host, std::uint16_t port,
                   std::string_view path) {
  const PolicyMatch match = set.match(host, port, path);
  return match.policy->name + (match.role != nullptr ? "/" + match.role->name : "");
}

}  // namespace

TEST_CASE(
    "policy set: a tunnel is looked into when a path of its host says so and none forbids it") {
  PolicySet set;
  CHECK(add(set, "general", "hosts = ['a.test', 'b.test', 'c.test']") == "");
  CHECK(add(set, "seen", "hosts = ['a.test', 'b.test']\npaths = ['/api/*']\nintercept = true") ==
        "");
  CHECK(add(set, "shut", "hosts = ['b.test']\npaths = ['/pinned/*']\nintercept = false") == "");
  CHECK(answer(set, "a.test", 443, "") == "seen");
  CHECK(answer(set, "b.test", 443, "") == "shut");
  CHECK(answer(set, "c.test", 443, "") == "general");
  CHECK(answer(set, "a.test", 443, "/other") == "general");
}

TEST_CASE("policy set: the most specific host, then the most specific path") {
  PolicySet set;
  CHECK(add(set, "exact", "hosts = ['api.example.com']") == "");
  CHECK(add(set, "exact-port", "hosts = ['api.example.com:8443']") == "");
  CHECK(add(set, "exact-path", "hosts = ['api.example.com']\npaths = ['/v2/*', '*.pdf']") == "");
  CHECK(add(set, "near", "hosts = ['*.example.com']") == "");
  CHECK(add(set, "far", "hosts = ['*.com']") == "");
  CHECK(add(set, "deep", "hosts = ['*.b.example.com']\npaths = ['/only']") == "");
  CHECK(add(set, "any-port", "hosts = ['*:9000']") == "");
  CHECK(add(set, "ip", "hosts = ['192.0.2.1', '[2001:db8::7]']") == "");
  CHECK(add(set, "idn", "hosts = ['bücher.example']") == "");
  struct Row {
    std::string host;
    std::uint16_t port;
    std::string path, policy;
  };
  const Row rows[] = {
      {"api.example.com", 80, "/", "exact"},
      {"API.EXAMPLE.COM.", 80, "/", "exact"},
      {"api.example.com", 8443, "/", "exact-port"},
      {"api.example.com", 8443, "/v2/x", "exact-port"},  // the port says more than the path
      {"api.example.com", 80, "/v2/x", "exact-path"},
      {"api.example.com", 80, "/v2/x?y", "exact-path"},
      {"api.example.com", 80, "/x.pdf", "exact-path"},
      {"api.example.com", 9000, "/", "exact"},
      {"x.example.com", 80, "/", "near"},
      {"a.b.example.com", 80, "/", "near"},
      {"a.b.example.com", 80, "/only", "deep"},
      {"example.com", 80, "/", "far"},  // "*.example.com" is about names below it
      {"com", 80, "/", "default"},
      {"notexample.com", 80, "/", "far"},
      {"x.test", 9000, "/", "any-port"},
      {"x.test", 80, "/", "default"},
      {"192.0.2.1", 80, "/", "ip"},
      {"[::ffff:192.0.2.1]", 80, "/", "ip"},
      {"[2001:DB8:0::7]", 443, "/", "ip"},
      {"2001:db8::7", 443, "/", "ip"},
      {"192.0.2.2", 80, "/", "default"},
      {"xn--bcher-kva.example", 80, "/", "idn"},
      {"XN--BCHER-KVA.example", 80, "/", "idn"},
      {"", 80, "/", "default"},
      {"[broken", 80, "/", "default"},
      {std::string(300, 'a') + ".com", 80, "/", "default"},
      // CONNECT: the path is not known yet.
      {"api.example.com", 443, "", "exact"},
      {"a.b.example.com", 443, "", "deep"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.host);
    CAPTURE(row.port);
    CAPTURE(row.path);
    CHECK(answer(set, row.host, row.port, row.path) == row.policy);
  }
}

TEST_CASE("policy set: '*' takes what nobody else does") {
  PolicySet set;
  CHECK(add(set, "all", "hosts = ['*']") == "");
  CHECK(add(set, "one", "hosts = ['a.test']\npaths = ['/x']") == "");
  CHECK(answer(set, "b.test", 80, "/") == "all");
  CHECK(answer(set, "a.test", 80, "/x") == "one");
  CHECK(answer(set, "a.test", 80, "/y") == "all");
}

TEST_CASE("policy set: roles by path") {
  PolicySet set;
  CHECK(add(set, "p", R"(
hosts = ["a.test"]
breaker.consecutive = 7
[roles.download]
paths = ["*.pdf", "/download/*"]
breaker.trial_calls = 2
[roles.latest]
paths = ["/download/latest"]
)") == "");
  CHECK(answer(set, "a.test", 80, "/") == "p");
  CHECK(answer(set, "a.test", 80, "/x.pdf") == "p/download");
  CHECK(answer(set, "a.test", 80, "/download/x?y") == "p/download");
  CHECK(answer(set, "a.test", 80, "/download/latest") == "p/latest");
  CHECK(answer(set, "a.test", 443, "") == "p");
  const PolicyMatch match = set.match("a.test", 80, "/x.pdf");
  CHECK(match.rules().breaker.trial_calls == 2);
  CHECK(match.rules().breaker.consecutive == 7);  // what the role does not say, the policy does
  CHECK(set.match("a.test", 80, "/").rules().breaker.trial_calls == 1);
}

TEST_CASE("policy set: no two policies for the same host and path") {
  PolicySet set;
  CHECK(add(set, "first", "hosts = ['a.test', '*.b.test']\npaths = ['/*', '/x']") == "");
  CHECK(add(set, "second", "hosts = ['c.test', 'A.test.']") ==
        "second.toml:1:20: \"a.test\" is already in first.toml\n"
        "  hosts = ['c.test', 'A.test.']\n"
        "                     ^\n");
  CHECK(answer(set, "c.test", 80, "/") == "default");  // nothing of it was taken
  CHECK(add(set, "third", "hosts = ['*.b.test']\npaths = ['/x', '/y']") ==
        "third.toml:1:10: \"*.b.test\" with path \"/x\" is already in first.toml\n"
        "  hosts = ['*.b.test']\n"
        "           ^\n");
  CHECK(add(set, "other-path", "hosts = ['a.test']\npaths = ['/y']") == "");
  CHECK(add(set, "other-port", "hosts = ['a.test:81']") == "");
  CHECK(set.policies().size() == 3);
}

TEST_CASE("policy set: without policies the defaults answer") {
  Policy base;
  base.rules.breaker.consecutive = 9;
  base.name = "something else";
  const PolicySet set(base);
  CHECK(answer(set, "a.test", 80, "/") == "default");
  CHECK(set.match("a.test", 80, "/").rules().breaker.consecutive == 9);
  CHECK(set.policies().empty());
}

TEST_CASE("policy set: a thousand policies") {
  PolicySet set;
  for (int i = 0; i < 1000; ++i) {
    const std::string n = std::to_string(i);
    CHECK(add(set, "p" + n,
              "hosts = ['h" + n + ".test', '*.s" + n + ".test', 'p" + n + ".test:81']") == "");
  }
  CHECK(set.policies().size() == 1000);
  for (int i = 0; i < 1000; ++i) {
    const std::string n = std::to_string(i);
    CAPTURE(n);
    CHECK(answer(set, "h" + n + ".test", 80, "/") == "p" + n);
    CHECK(answer(set, "a.b.s" + n + ".test", 80, "/") == "p" + n);
    CHECK(answer(set, "p" + n + ".test", 81, "/") == "p" + n);
    CHECK(answer(set, "p" + n + ".test", 80, "/") == "default");
  }
}
