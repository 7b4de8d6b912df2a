#include "proxy/cli/client_environment.h"

#include <doctest/doctest.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include "proxy/clock.h"
#include "proxy/exec_token.h"
#include "proxy/tls/distrust.h"
#include "unit/proxy/tls_support.h"

using namespace sluice;

namespace {

const ClientFiles kFiles{"/s/ca.pem", "/s/bundle.pem", "/s/trust.jks",
                         "/s/wgetrc", "/s/php",        "/s/node.cjs"};

std::string value(const Variables& variables, const std::string& name) {
  for (const auto& [key, text] : variables) {
    if (key == name) return text;
  }
  return "(unset)";
}

}  // namespace

TEST_CASE("environment: what the user has set is kept") {
  const ProxyAddress proxy{"127.0.0.1", "7878", "job", "secret"};
  Environment mine;
  mine.variables = {
      {"NO_PROXY", "intranet"}, {"JAVA_TOOL_OPTIONS", "-Xmx1g"}, {"NODE_OPTIONS", ""}};
  const Variables set = client_environment(proxy, kFiles, mine);
  CHECK(value(set, "https_proxy") == "http://job:secret@127.0.0.1:7878");
  CHECK(value(set, "no_proxy") == "intranet,localhost,127.0.0.0/8,127.0.0.1,::1");
  CHECK(value(set, "NODE_OPTIONS") == "--require=/s/node.cjs");
  CHECK(value(set, "PHP_INI_SCAN_DIR") == ":/s/php");
  const std::string java = value(set, "JAVA_TOOL_OPTIONS");
  CHECK(java.starts_with("-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=7878 "));
  // One inside the other: nothing is added twice.
  Environment inner;
  for (const auto& [name, text] : set) inner.variables[name] = text;
  const Variables again = client_environment(proxy, kFiles, inner);
  CHECK(value(again, "JAVA_TOOL_OPTIONS") == java);
  CHECK(value(again, "NO_PROXY") == value(set, "NO_PROXY"));
}

TEST_CASE("environment: shell lines survive any value") {
  CHECK(shell_lines({{"A", "it's"}}, Shell::posix) == "export A='it'\\''s'\n");
  CHECK(shell_lines({{"A", "it's \\"}}, Shell::fish) == "set -gx A 'it\\'s \\\\'\n");
}

TEST_CASE("trust store: Java's own form, sealed") {
  const Scratch scratch;
  REQUIRE(Authority::load_or_make(scratch.files(), kToday));
  const std::string pem = content(scratch.files().certificate);
  const auto store = make_trust_store(pem + pem);
  REQUIRE(store);
  CHECK(store->substr(0, 12) == std::string("\xfe\xed\xfe\xed\0\0\0\2\0\0\0\2", 12));
  CHECK(store->find("X.509") != std::string::npos);
  CHECK_FALSE(make_trust_store("no certificate"));
}

TEST_CASE("exec token: made once, its owner's, and read back") {
  const Scratch scratch;
  const auto token = ExecToken::load_or_make(scratch.path());
  REQUIRE(token);
  const auto again = ExecToken::load_or_make(scratch.path());
  REQUIRE(again);
  const std::string shown = token->password({"4711", 500});
  CHECK(again->password({"4711", 500}) == shown);
  REQUIRE(token->read(shown));
  CHECK(token->read(shown)->run == "4711");
  CHECK(token->read(shown)->max_requests == 500);
  for (const std::string& wrong :
       {std::string(), std::string("exec-"), shown + "x", shown + ".", shown.substr(1),
        shown.substr(0, shown.size() - 3), shown + "99999999999999999999",
        token->password({"a b", 0}), token->password({std::string(99, 'a'), 0})}) {
    CAPTURE(wrong);
    CHECK_FALSE(token->read(wrong));
  }
  chmod((scratch.path() + "/exec.token").c_str(), 0644);
  const auto exposed = ExecToken::load_or_make(scratch.path());
  REQUIRE_FALSE(exposed);
  CHECK(exposed.error().find("can be read by others") != std::string::npos);
}

TEST_CASE("distrust: said once a minute for a host, with what to do") {
  Distrust distrust;
  const Instant start{};
  const std::string first = distrust.explain("a.test", SSL_AD_UNKNOWN_CA, "", start);
  CHECK(first.find("sluice exec") != std::string::npos);
  CHECK(first.find("intercept = false") != std::string::npos);
  CHECK(distrust.explain("a.test", SSL_AD_UNKNOWN_CA, "", start + 59s).empty());
  CHECK_FALSE(distrust.explain("b.test", SSL_AD_UNKNOWN_CA, "", start).empty());
  CHECK_FALSE(distrust.explain("a.test", SSL_AD_UNKNOWN_CA, "", start + 60s).empty());
  CHECK(distrust.explain("c.test", -1, "no shared cipher", start) ==
        "the TLS handshake with a client for c.test failed: no shared cipher");
}
