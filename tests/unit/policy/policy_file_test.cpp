#include "policy/policy_file.h"

#include <doctest/doctest.h>

#include <string>

using namespace sluice;

namespace {

// Everything that is wrong, as a person sees it.
std::string complaints(const std::string& text, const Policy& base = {}) {
  std::string out;
  for (const Diagnostic& problem : read_policy(text, "p.toml", base).problems)
    out += render(problem);
  return out;
}

Policy policy(const std::string& text, const Policy& base = {}) {
  PolicyReading reading = read_policy(text, "policies/p.toml", base);
  for (const Diagnostic& problem : reading.problems) FAIL(render(problem));
  return std::move(reading.read.policy);
}

Rules rules(const std::string& text) { return policy("hosts = ['a.test']\n" + text).rules; }

// The contract's example: every key with its default.
constexpr const char* kExample = R"(
hosts     = ["api.example.com", "*.example.org"]   # the most specific match wins; required
paths     = ["/*"]
scope     = "host"
credential_headers = ["authorization", "x-api-key", "cookie"]
mode      = "enforce"
intercept = false
upgrade   = false
extra_ca  = ""

[classify]
rate_limited = [429]
server_error = [408, 500, 502, 503, 504, 529]
failures     = ["rate_limited", "anti_bot", "server_error", "network"]
markers      = []
scan         = "64KiB"

[breaker]
consecutive        = 5
window             = { failures = 3, kind = "rate_limited", within = "10m" }
cooldown           = ["1m", "5m", "15m", "1h"]
antibot_cooldown   = ["1h", "6h", "12h", "24h", "48h"]
retry_after_cap    = "15m"
decay              = "48h"
trial_calls        = 1
successes_to_close = 1
probe_timeout      = "30s"
jitter             = 0.1

[pace]
min_delay = "0s"
jitter    = "0s"
max_concurrency = 0
adapt     = "learned"
step      = "1s"
cap       = "60s"
recover_after = 20
crawl_delay = false
ramp      = true

[hold]
max_wait  = "15s"
max_queue = 1000

[retry]
max       = 2
methods   = ["GET", "HEAD", "OPTIONS"]
on        = ["rate_limited", "server_error", "network"]

[limits]
requests  = []

[cost]
per_request = 0.0
)";

}  // namespace

TEST_CASE("policy file: the contract's example says the defaults") {
  const Policy example = policy(kExample);
  Policy expected;
  expected.name = "p";
  expected.hosts = {"api.example.com", "*.example.org"};
  CHECK(policy("hosts = ['api.example.com', '*.example.org']") == expected);
  expected.intercept = false;  // written down it holds whatever the configuration says
  CHECK(example == expected);
}

TEST_CASE("policy file: its role has other numbers for part of the host") {
  const Policy read = policy(std::string(kExample) + R"(
[roles.download]
paths  = ["*.pdf", "/download/*"]
breaker.trial_calls = 2
breaker.consecutive = 4
)");
  REQUIRE(read.roles.size() == 1);
  Rules expected;
  expected.breaker.trial_calls = 2;
  expected.breaker.consecutive = 4;
  CHECK(read.roles[0].name == "download");
  CHECK(read.roles[0].paths == std::vector<std::string>{"*.pdf", "/download/*"});
  CHECK(read.roles[0].rules == expected);
  CHECK(read.rules == Rules{});
}

TEST_CASE("policy file: every key of the head changes what it names") {
  const Policy read = policy(R"(
hosts = ["B.test."]
paths = ["/v1/*", "*"]
scope = "credential"
credential_headers = ["X-Token"]
mode = "observe"
intercept = true
upgrade = true
extra_ca = "/ca.pem"
client_cert = "/c.pem"
client_key = "/k.pem"
)");
  CHECK(read.hosts == std::vector<std::string>{"b.test"});
  CHECK(read.paths == std::vector<std::string>{"/v1/*", "/*"});
  CHECK(read.scope == Scope::credential);
  CHECK(read.credential_headers == std::vector<std::string>{"x-token"});
  CHECK(read.rules.mode == Mode::observe);
  CHECK(read.intercept == true);
  CHECK(read.upgrade);
  CHECK(read.extra_ca == "/ca.pem");
  CHECK(read.client_cert == "/c.pem");
  CHECK(read.client_key == "/k.pem");
  CHECK(policy("hosts = ['a']\nscope = 'policy'").scope == Scope::policy);
}

TEST_CASE("policy file: every key of [classify]") {
  const ClassifyRules read = rules(R"([classify]
rate_limited = [420, 503]
failures = ["network", "anti_bot"]
markers = [
  { in = "body", text = "Slow Down", status = [200, 403] },
  { in = "header", name = "X-Blocked" },
  { in = "header", name = "server", text = "shield" },
  { in = "location", text = "/captcha" },
]
scan = 1000
)")
                                 .classify;
  CHECK(read.rate_limited == std::vector<std::uint16_t>{420, 503});
  CHECK(read.server_error == std::vector<std::uint16_t>{408, 500, 502, 504, 529});  // 503 moved
  CHECK(read.failures == KindSet{OutcomeKind::network, OutcomeKind::anti_bot});
  CHECK(read.scan == 1000);
  using Place = Marker::Place;
  const std::vector<Marker> markers = {{Place::body, "", "Slow Down", {200, 403}},
                                       {Place::header, "x-blocked", "", {}},
                                       {Place::header, "server", "shield", {}},
                                       {Place::location, "", "/captcha", {}}};
  CHECK(read.markers == markers);
  CHECK(rules("classify.failures = []").classify.failures.empty());
  CHECK(rules("classify.server_error = [429]").classify.rate_limited.empty());
}

TEST_CASE("policy file: every key of the other sections") {
  const Rules read = rules(R"(
[breaker]
consecutive = 2
window = { failures = 64, kind = "server_error", within = "1h" }
cooldown = ["30s"]
antibot_cooldown = ["2h", "2h"]
retry_after_cap = "1d"
decay = "1h"
trial_calls = 3
successes_to_close = 4
probe_timeout = "5s"
jitter = 1
[pace]
min_delay = "250ms"
jitter = "100ms"
max_concurrency = 8
adapt = "linear"
step = "500ms"
cap = "10s"
recover_after = 7
crawl_delay = true
ramp = false
[hold]
max_wait = "0s"
max_queue = 0
[retry]
max = 0
methods = ["GET", "PROPFIND"]
on = []
[limits]
requests = [{ count = 50, per = "1h" }, { count = 200, per = "1d" }]
[cost]
per_request = 0.002
)");
  CHECK(read.breaker.consecutive == 2);
  CHECK(read.breaker.window == FailureWindow{64, OutcomeKind::server_error, 1h});
  CHECK(read.breaker.cooldown == std::vector<Duration>{30s});
  CHECK(read.breaker.antibot_cooldown == std::vector<Duration>{2h, 2h});
  CHECK(read.breaker.retry_after_cap == 24h);
  CHECK(read.breaker.decay == 1h);
  CHECK(read.breaker.trial_calls == 3);
  CHECK(read.breaker.successes_to_close == 4);
  CHECK(read.breaker.probe_timeout == 5s);
  CHECK(read.breaker.jitter == 1.0);
  CHECK(read.pace == PaceRules{250ms, 100ms, 8, Adapt::linear, 500ms, 10s, 7, true, false});
  CHECK(read.hold == HoldRules{0s, 0});
  CHECK(read.retry == RetryRules{0, {"GET", "PROPFIND"}, {}});
  CHECK(read.limits.requests == std::vector<RequestLimit>{{50, 1h}, {200, 24h}});
  CHECK(read.cost.per_request == 0.002);
  CHECK(rules("cost = { header = 'X-Cost', paths = [{ path = '/v1/*', cost = 2 }] }").cost ==
        CostRules{0.0, {{"/v1/*", 2.0}}, "x-cost"});
  CHECK(rules("pace.adapt = 'off'").pace.adapt == Adapt::off);
  CHECK(rules("pace.adapt = 'learned'").pace.adapt == Adapt::learned);
  CHECK(rules("breaker.window = { failures = 9 }").breaker.window ==
        FailureWindow{9, OutcomeKind::rate_limited, 10min});
  CHECK(rules("pace.min_delay = '90s'").pace.cap == 90s);  // a cap nobody wrote gives way
}

TEST_CASE("policy file: the base of every policy") {
  Policy base;
  base.rules.breaker.consecutive = 9;
  base.rules.pace.min_delay = 2s;
  base.scope = Scope::policy;
  base.roles.push_back({"x", {"/x"}, {}});
  base.hosts = {"elsewhere"};
  const Policy read = policy("hosts = ['a.test']\nbreaker.trial_calls = 2", base);
  CHECK(read.rules.breaker.consecutive == 9);
  CHECK(read.rules.breaker.trial_calls == 2);
  CHECK(read.rules.pace.min_delay == 2s);
  CHECK(read.scope == Scope::policy);
  CHECK(read.hosts == std::vector<std::string>{"a.test"});
  CHECK(read.roles.empty());
  CHECK(read.name == "p");
}

TEST_CASE("policy file: names") {
  CHECK(policy_name("policies/github.toml") == "github");
  CHECK(policy_name("github.toml") == "github");
  CHECK(policy_name("/a/b.c/x.y.toml") == "x.y");
  CHECK(policy_name("x") == "x");
  CHECK(policy_name(".toml") == ".toml");
}

TEST_CASE("policy file: complaints, word by word") {
  struct Row {
    std::string text, complaint;
  };
  const Row rows[] = {
      {"mode = 'enforce'",
       "p.toml:1:1: hosts is missing: a policy says which hosts it is for\n"
       "  mode = 'enforce'\n"
       "  ^\n"},
      {"", "p.toml:1:1: hosts is missing: a policy says which hosts it is for\n"},
      {"hosts = []",
       "p.toml:1:9: hosts must name at least one host\n"
       "  hosts = []\n"
       "          ^\n"},
      {"hosts = 'a.test'",
       "p.toml:1:9: hosts must be a list of strings, not a string\n"
       "  hosts = 'a.test'\n"
       "          ^\n"},
      {"hosts = [1]",
       "p.toml:1:10: hosts must hold strings, not a whole number\n"
       "  hosts = [1]\n"
       "           ^\n"},
      {"hosts = ['a.test', 'a b']",
       "p.toml:1:20: hosts: \"a b\": a host name holds letters, digits, '-', '_' and dots only\n"
       "  hosts = ['a.test', 'a b']\n"
       "                     ^\n"},
      {"hosts = ['a.test',\n  'A.TEST.']",
       "p.toml:2:3: hosts: \"A.TEST.\" is listed twice\n"
       "    'A.TEST.']\n"
       "    ^\n"},
      {"hosts = ['a']\npaths = []",
       "p.toml:2:9: paths must name at least one path pattern\n"
       "  paths = []\n"
       "          ^\n"},
      {"hosts = ['a']\npaths = ['x']",
       "p.toml:2:10: paths: \"x\" must start with '/' or '*'\n"
       "  paths = ['x']\n"
       "           ^\n"},
      {"hosts = ['a']\npaths = ['/x?y']",
       "p.toml:2:10: paths: \"/x?y\" must not hold '?' or '#': a query is never looked at\n"
       "  paths = ['/x?y']\n"
       "           ^\n"},
      {"hosts = ['a']\npaths = ['*', '/*']",
       "p.toml:2:9: paths has one pattern twice\n"
       "  paths = ['*', '/*']\n"
       "          ^\n"},
      {"hosts = ['a']\nmod = 'observe'",
       "p.toml:2:1: unknown key 'mod'; did you mean 'mode'?\n"
       "  mod = 'observe'\n"
       "  ^\n"},
      {"hosts = ['a']\n[breaker]\nconsecutiv = 3",
       "p.toml:3:1: unknown key 'consecutiv' in [breaker]; did you mean 'consecutive'?\n"
       "  consecutiv = 3\n"
       "  ^\n"},
      {"hosts = ['a']\n[pace]\nmax_wait = '3s'",
       "p.toml:3:1: unknown key 'max_wait' in [pace]; it belongs in [hold]\n"
       "  max_wait = '3s'\n"
       "  ^\n"},
      {"hosts = ['a']\n[hold]\nintercept = true",
       "p.toml:3:1: unknown key 'intercept' in [hold]; it belongs above the first [section]\n"
       "  intercept = true\n"
       "  ^\n"},
      {"hosts = ['a']\n[brakes]\nx = 1",
       "p.toml:2:2: unknown key 'brakes'; did you mean 'breaker'?\n"
       "  [brakes]\n"
       "   ^\n"},
      {"hosts = ['a']\nmode = 'watch'",
       "p.toml:2:8: mode must be \"enforce\" or \"observe\", not \"watch\"\n"
       "  mode = 'watch'\n"
       "         ^\n"},
      {"hosts = ['a']\nmode = 1",
       "p.toml:2:8: mode must be \"enforce\" or \"observe\", not a whole number\n"
       "  mode = 1\n"
       "         ^\n"},
      {"hosts = ['a']\nintercept = 'yes'",
       "p.toml:2:13: intercept must be true or false, not a string\n"
       "  intercept = 'yes'\n"
       "              ^\n"},
      {"hosts = ['a']\nhold.max_wait = 15",
       "p.toml:2:17: hold.max_wait must be a duration such as \"90s\", not a whole number\n"
       "  hold.max_wait = 15\n"
       "                  ^\n"},
      {"hosts = ['a']\nhold.max_wait = '15 s'",
       "p.toml:2:17: hold.max_wait: \"15 s\" is not a duration: write a number and ms, s, m, h or "
       "d, "
       "such as \"90s\"\n"
       "  hold.max_wait = '15 s'\n"
       "                  ^\n"},
      {"hosts = ['a']\nbreaker.consecutive = 0",
       "p.toml:2:23: breaker.consecutive must be at least 1\n"
       "  breaker.consecutive = 0\n"
       "                        ^\n"},
      {"hosts = ['a']\nbreaker.window.failures = 65",
       "p.toml:2:27: breaker.window.failures must be at most 64\n"
       "  breaker.window.failures = 65\n"
       "                            ^\n"},
      {"hosts = ['a']\nbreaker.cooldown = ['5m', '1m']",
       "p.toml:2:20: breaker.cooldown must not get shorter from one level to the next\n"
       "  breaker.cooldown = ['5m', '1m']\n"
       "                     ^\n"},
      {"hosts = ['a']\nbreaker.cooldown = []",
       "p.toml:2:20: breaker.cooldown must name at least one duration\n"
       "  breaker.cooldown = []\n"
       "                     ^\n"},
      {"hosts = ['a']\nbreaker.jitter = 1.5",
       "p.toml:2:18: breaker.jitter must be at most 1\n"
       "  breaker.jitter = 1.5\n"
       "                   ^\n"},
      {"hosts = ['a']\nbreaker.jitter = nan",
       "p.toml:2:18: breaker.jitter must be at least 0\n"
       "  breaker.jitter = nan\n"
       "                   ^\n"},
      {"hosts = ['a']\nbreaker.retry_after_cap = '0s'",
       "p.toml:2:27: breaker.retry_after_cap must be at least 1 s\n"
       "  breaker.retry_after_cap = '0s'\n"
       "                            ^\n"},
      {"hosts = ['a']\npace.cap = '1s'\npace.min_delay = '2s'",
       "p.toml:2:12: pace.cap (1 s) must not be shorter than min_delay (2 s)\n"
       "  pace.cap = '1s'\n"
       "             ^\n"},
      {"hosts = ['a']\npace.adapt = 'fast'",
       "p.toml:2:14: pace.adapt must be \"learned\", \"linear\" or \"off\", not \"fast\"\n"
       "  pace.adapt = 'fast'\n"
       "               ^\n"},
      {"hosts = ['a']\nclassify.rate_limited = [99]",
       "p.toml:2:26: classify.rate_limited must hold numbers from 100 to 599, not 99\n"
       "  classify.rate_limited = [99]\n"
       "                           ^\n"},
      {"hosts = ['a']\nclassify.rate_limited = [503]\nclassify.server_error = [503]",
       "p.toml:3:25: 503 is in both rate_limited and server_error\n"
       "  classify.server_error = [503]\n"
       "                          ^\n"},
      {"hosts = ['a']\nclassify.failures = ['local']",
       "p.toml:2:22: classify.failures: \"local\" is not one of \"rate_limited\", \"anti_bot\", "
       "\"server_error\" or \"network\"\n"
       "  classify.failures = ['local']\n"
       "                       ^\n"},
      {"hosts = ['a']\nclassify.scan = '1TB'",
       "p.toml:2:17: classify.scan: \"1TB\" is not a size: write bytes, or a number and KiB, MiB, "
       "KB "
       "or MB\n"
       "  classify.scan = '1TB'\n"
       "                  ^\n"},
      {"hosts = ['a']\nclassify.scan = '1GiB'",
       "p.toml:2:17: classify.scan must be at most 67108864 bytes\n"
       "  classify.scan = '1GiB'\n"
       "                  ^\n"},
      {"hosts = ['a']\nclassify.markers = [{ in = 'body', text = 'abc' }]",
       "p.toml:2:43: a text of less than 4 bytes is found in any page\n"
       "  classify.markers = [{ in = 'body', text = 'abc' }]\n"
       "                                            ^\n"},
      {"hosts = ['a']\nclassify.markers = [{ text = 'abcd' }]",
       "p.toml:2:21: classify.markers[].in is missing\n"
       "  classify.markers = [{ text = 'abcd' }]\n"
       "                      ^\n"},
      {"hosts = ['a']\nclassify.markers = [{ in = 'header', text = 'x' }]",
       "p.toml:2:21: a marker in a header needs the header's name\n"
       "  classify.markers = [{ in = 'header', text = 'x' }]\n"
       "                      ^\n"},
      {"hosts = ['a']\nclassify.markers = [{ in = 'body', txt = 'abcd' }]",
       "p.toml:2:21: a marker needs a text to look for\n"
       "  classify.markers = [{ in = 'body', txt = 'abcd' }]\n"
       "                      ^\n"
       "p.toml:2:36: unknown key 'txt' in [classify.markers[]]; did you mean 'text'?\n"
       "  classify.markers = [{ in = 'body', txt = 'abcd' }]\n"
       "                                     ^\n"},
      {"hosts = ['a']\nretry.on = ['anti_bot']",
       "p.toml:2:13: retry.on: \"anti_bot\" is not one of \"rate_limited\", \"server_error\" or "
       "\"network\"\n"
       "  retry.on = ['anti_bot']\n"
       "              ^\n"},
      {"hosts = ['a']\nretry.methods = ['G T']",
       "p.toml:2:18: retry.methods: \"G T\" is not a method\n"
       "  retry.methods = ['G T']\n"
       "                   ^\n"},
      {"hosts = ['a']\nlimits.requests = [{ count = 5 }]",
       "p.toml:2:20: limits.requests[].per is missing\n"
       "  limits.requests = [{ count = 5 }]\n"
       "                     ^\n"},
      {"hosts = ['a']\nlimits.requests = [{ count = 0, per = '1h' }]",
       "p.toml:2:30: limits.requests[].count must be at least 1\n"
       "  limits.requests = [{ count = 0, per = '1h' }]\n"
       "                               ^\n"},
      {"hosts = ['a']\ncost.per_request = -1",
       "p.toml:2:20: cost.per_request must be at least 0\n"
       "  cost.per_request = -1\n"
       "                     ^\n"},
      {"hosts = ['a']\nbreaker = 5",
       "p.toml:2:11: breaker must be a table, not a whole number\n"
       "  breaker = 5\n"
       "            ^\n"},
      {"hosts = ['a']\nscope = 'credential'\ncredential_headers = []",
       "p.toml:3:22: credential_headers must not be empty when scope is \"credential\"\n"
       "  credential_headers = []\n"
       "                       ^\n"},
      {"hosts = ['a']\nclient_cert = '/c.pem'",
       "p.toml:2:15: client_cert and client_key go together: one of them is missing\n"
       "  client_cert = '/c.pem'\n"
       "                ^\n"},
      {"hosts = ['a']\n[roles.x]\nmode = 'observe'",
       "p.toml:2:1: roles.x.paths is missing: a role says which paths it is for\n"
       "  [roles.x]\n"
       "  ^\n"},
      {"hosts = ['a']\n[roles.x]\npaths = ['/x']\nhosts = ['b']",
       "p.toml:4:1: unknown key 'hosts' in [roles.x]; it belongs above the first [section]\n"
       "  hosts = ['b']\n"
       "  ^\n"},
      {"hosts = ['a']\nextra_ca = \"a\\u0000b\"",
       "p.toml:2:12: extra_ca must not hold a zero byte\n"
       "  extra_ca = \"a\\u0000b\"\n"
       "             ^\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(complaints(row.text) == row.complaint);
  }
}

TEST_CASE("policy file: what is no TOML at all") {
  const auto first_line = [](const std::string& text) {
    const std::string all = complaints(text);
    return all.substr(0, all.find('\n'));
  };
  CHECK(first_line("hosts = [").starts_with("p.toml:1:10: not valid TOML: "));
  CHECK(first_line("hosts = ['a']\nhosts = ['b']").starts_with("p.toml:2:"));
  CHECK(first_line("\xff").starts_with("p.toml:1:"));
  CHECK(first_line("a = \"\x1b[31m\"").find('\x1b') == std::string::npos);
  CHECK(first_line(std::string((1 << 20) + 1, '#')) == "p.toml:1:1: the file is larger than 1 MiB");
  CHECK(first_line("x = " + std::string(200, '[')).starts_with("p.toml:1:"));
  for (const char* header :
       {"[ = 1", "[[ =", "[.a]", "[\x01]", "[,", "[#", "[ \n]", "größe = 1", "x ǡ = 1"}) {
    CAPTURE(header);
    CHECK(first_line("hosts = ['a']\n" + std::string(header)).starts_with("p.toml:2:"));
  }
  std::string dots = "a";
  for (int i = 0; i < 100000; ++i) dots += ".a";
  CHECK(first_line(dots + " = 1") == "p.toml:1:1: not valid TOML: too many dots on one line");
}

TEST_CASE("policy file: every error of a file is told, in its order, and not without end") {
  CHECK(complaints("mode = 1\nhosts = ['a']\n[pace]\nstep = 5\nfoo = 1\n") ==
        "p.toml:1:8: mode must be \"enforce\" or \"observe\", not a whole number\n"
        "  mode = 1\n"
        "         ^\n"
        "p.toml:4:8: pace.step must be a duration such as \"90s\", not a whole number\n"
        "  step = 5\n"
        "         ^\n"
        "p.toml:5:1: unknown key 'foo' in [pace]\n"
        "  foo = 1\n"
        "  ^\n");
  std::string many = "hosts = ['a']\n";
  for (int i = 0; i < 500; ++i) many += "unknown_" + std::to_string(i) + " = 1\n";
  CHECK(read_policy(many, "p.toml", {}).problems.size() == 100);
}

TEST_CASE("policy file: markers that are too much for one table are refused where they stand") {
  std::string text = "hosts = ['a.test']\n[classify]\nmarkers = [\n";
  for (int i = 0; i < 100; ++i) {
    text += "{ in = 'body', text = '" + std::to_string(1000 + i) + std::string(200, 'x') + "' },\n";
  }
  const std::string said = complaints(text + "]\n");
  CHECK(said.starts_with("p.toml:3:"));
  CHECK(said.find("KiB") != std::string::npos);
}
