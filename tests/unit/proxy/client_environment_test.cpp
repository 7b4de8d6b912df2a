#include "proxy/cli/client_environment.h"

#include <doctest/doctest.h>
#include <openssl/sha.h>

#include <filesystem>

#include "proxy/clock.h"
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
  const ProxyAddress proxy{"127.0.0.1", "7878", "job"};
  Environment mine;
  mine.variables = {
      {"NO_PROXY", "intranet"}, {"JAVA_TOOL_OPTIONS", "-Xmx1g"}, {"NODE_OPTIONS", ""}};
  const Variables set = client_environment(proxy, kFiles, mine);
  CHECK(value(set, "https_proxy") == "http://job:sluice@127.0.0.1:7878");
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

TEST_CASE("environment: what is exempt for others is for Java, in its words") {
  const auto exempt = [](const char* list) {
    Environment mine;
    mine.variables["no_proxy"] = list;
    const std::string java =
        value(client_environment({"127.0.0.1", "7878", ""}, kFiles, mine), "JAVA_TOOL_OPTIONS");
    const std::string name = " -Dhttp.nonProxyHosts=";
    const auto at = java.find(name) + name.size();
    return java.substr(at, java.find(' ', at) - at);
  };
  const struct {
    const char *list, *hosts;
  } rows[] = {
      {"", "localhost|127.*|[::1]"},
      {".corp", "*.corp|localhost|127.*|[::1]"},
      {"wiki.corp, *.lan", "wiki.corp|*.wiki.corp|*.lan|localhost|127.*|[::1]"},
      {"10.0.0.0/8,fd00::1 wiki:80", "[fd00::1]|localhost|127.*|[::1]"},
      {"a\"b,c'd,-Dx=y", "localhost|127.*|[::1]"},
      {"*", "*|localhost|127.*|[::1]"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.list);
    CHECK(exempt(row.list) == row.hosts);
  }
}

TEST_CASE("environment: a path with a space is one word for Node and for Java") {
  ClientFiles spaced = kFiles;
  spaced.node_shim = "/my state/\"quoted\\/node.cjs";
  spaced.trust_store = "/my state/it's \"here\"/trust.jks";
  const Variables set = client_environment({"127.0.0.1", "7878", ""}, spaced, {});
  CHECK(value(set, "NODE_OPTIONS") == R"(--require="/my state/\"quoted\\/node.cjs")");
  const std::string java = value(set, "JAVA_TOOL_OPTIONS");
  CHECK(java.find(R"( -Djavax.net.ssl.trustStore="/my state/it's "'"'"here"'"'"/trust.jks" )") !=
        std::string::npos);
}

TEST_CASE("client files: what one command was given no other changes") {
  const Scratch scratch;
  REQUIRE(Authority::load_or_make(scratch.files(), kToday));
  const std::string own = content(scratch.files().certificate);
  const std::string corporate = "-----BEGIN CERTIFICATE-----\ncorporate\n";
  const auto write = [&](const Environment& environment) {
    const auto files =
        write_client_files(scratch.path() + "/clients", scratch.files().certificate, environment);
    REQUIRE(files);
    return *files;
  };
  Environment mine;
  mine.variables["HOME"] = scratch.path();
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"})
    mine.variables[name] = scratch.write("one.pem", own);
  mine.variables["REQUESTS_CA_BUNDLE"] = scratch.write("two.pem", corporate);
  scratch.write(".wgetrc", "tries = 3");
  const ClientFiles first = write(mine);
  CHECK(content(first.bundle) == own + corporate);
  CHECK(content(first.wgetrc) == "tries = 3\nca_certificate = " + first.bundle + "\n");

  Environment other = mine;
  other.variables.erase("REQUESTS_CA_BUNDLE");
  const ClientFiles second = write(other);
  CHECK(second.bundle != first.bundle);
  CHECK(content(first.bundle) == own + corporate);
  CHECK(content(second.bundle).find(corporate) == std::string::npos);

  // Inside the first one: the same files, and nothing twice.
  Environment inner = mine;
  for (const auto& [name, text] : client_environment({"127.0.0.1", "1", ""}, first, mine))
    inner.variables[name] = text;
  CHECK(write(inner).bundle == first.bundle);
  CHECK(content(first.wgetrc) == "tries = 3\nca_certificate = " + first.bundle + "\n");
}

TEST_CASE("client files: their owner's alone, for a copy of wget's settings may hold a password") {
  const Scratch scratch;
  REQUIRE(Authority::load_or_make(scratch.files(), kToday));
  const std::filesystem::path directory = scratch.path() + "/clients";
  std::filesystem::create_directory(directory);  // as another version has left it
  std::filesystem::permissions(directory, std::filesystem::perms{0755});
  const auto files = write_client_files(directory, scratch.files().certificate, {});
  REQUIRE(files);
  const auto permissions = [](const std::filesystem::path& path) {
    return static_cast<unsigned>(std::filesystem::status(path).permissions());
  };
  CHECK(permissions(directory) == 0700);
  for (const std::string& path : {files->bundle, files->trust_store, files->wgetrc,
                                  files->php_ini + "/sluice.ini", files->node_shim}) {
    CHECK(permissions(path) == 0600);
  }
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
