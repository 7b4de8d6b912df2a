#include "proxy/admin/guard.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace sluice;

namespace {

const std::string kToken(64, 'a');
const AdminPeer kLoopback{false, Address::v4(127, 0, 0, 1, 7879)};

AdminRequest request(std::string path = "/api/keys", std::string host = "127.0.0.1:7879") {
  AdminRequest out;
  out.method = "GET";
  out.path = std::move(path);
  out.host = std::move(host);
  out.host_fields = 1;
  out.authorization = "Bearer " + kToken;
  return out;
}

int status(const AdminRequest& request, const AdminPeer& peer = kLoopback) {
  const auto no = objection(request, peer, kToken);
  return no ? no->status : 200;
}

}  // namespace

TEST_CASE("guard: the Host must be the address that was reached") {
  struct Row {
    const char* host;
    int status;
  };
  const Row rows[] = {
      {"127.0.0.1:7879", 200},
      {"127.0.0.1", 200},
      {"localhost:7879", 200},
      {"LOCALHOST", 200},
      {"localhost:9999", 200},  // behind a forwarded port
      {"evil.example:7879", 403},
      {"evil.example", 403},
      {"127.0.0.1.evil.example", 403},
      {"localhost.evil.example:7879", 403},
      {"127.0.0.2:7879", 403},
      {"[::1]:7879", 403},
      {"0.0.0.0:7879", 403},
      {"127.1:7879", 403},
      {"0x7f000001:7879", 403},
      {"2130706433", 403},
      {"127.0.0.1:port", 403},
      {"127.0.0.1:7879:7879", 403},
      {"", 403},
      {":7879", 403},
      {"127.0.0.1:7879@evil.example", 403},
  };
  for (const Row& row : rows) {
    CAPTURE(row.host);
    CHECK(status(request("/api/keys", row.host)) == row.status);
    CHECK(status(request("/metrics", row.host)) == row.status);
    CHECK(status(request("/", row.host)) == row.status);
  }
  AdminRequest twice = request();
  twice.host_fields = 2;
  CHECK(status(twice) == 403);
}

TEST_CASE("guard: an address of the network is ours when it was reached, localhost is not") {
  const AdminPeer peer{false, Address::v4(192, 0, 2, 7, 7879)};
  CHECK(status(request("/api/keys", "192.0.2.7:7879"), peer) == 200);
  CHECK(status(request("/api/keys", "localhost:7879"), peer) == 403);
  CHECK(status(request("/api/keys", "127.0.0.1:7879"), peer) == 403);
}

TEST_CASE("guard: pages of other sites get nothing, not even with the token") {
  struct Row {
    const char* origin;
    const char* site;
    const char* method;
    const char* path;
    int status;
  };
  const Row rows[] = {
      {"http://127.0.0.1:7879", "same-origin", "POST", "/api/stop", 200},
      {"http://127.0.0.1:7880", "", "POST", "/api/stop", 403},  // another port is another site
      {"https://127.0.0.1:7879", "", "POST", "/api/stop", 403},
      {"http://evil.example", "", "POST", "/api/stop", 403},
      {"null", "", "POST", "/api/stop", 403},
      {"http://evil.example", "", "GET", "/metrics", 403},
      {"", "cross-site", "POST", "/api/stop", 403},
      {"", "same-site", "GET", "/api/keys", 403},  // localhost:3000 is the same "site"
      {"", "none", "GET", "/", 200},
      {"", "cross-site", "GET", "/", 200},  // a link to the page
  };
  for (const Row& row : rows) {
    CAPTURE(row.origin);
    CAPTURE(row.site);
    AdminRequest asked = request(row.path);
    asked.method = row.method;
    asked.origin = row.origin;
    asked.fetch_site = row.site;
    CHECK(status(asked) == row.status);
  }
}

TEST_CASE("guard: everything but probes, metrics and the page's files needs the token") {
  struct Row {
    const char* authorization;
    int status;
  };
  const std::string good = "Bearer " + kToken;
  const std::string other = "Bearer " + std::string(64, 'b');
  const std::string longer = good + "a";
  const std::string prefix = "Bearer " + kToken.substr(1);
  const std::string lower = "bearer " + kToken;
  const Row rows[] = {{good.c_str(), 200},   {lower.c_str(), 200},   {"", 401},
                      {other.c_str(), 401},  {longer.c_str(), 401},  {prefix.c_str(), 401},
                      {kToken.c_str(), 401}, {"Basic YTphYQ==", 401}};
  for (const Row& row : rows) {
    CAPTURE(row.authorization);
    for (const char* path : {"/api/keys", "/api/stop", "/api", "/apix", "/nothing", "/api/../"}) {
      CAPTURE(path);
      AdminRequest asked = request(path);
      asked.authorization = row.authorization;
      CHECK(status(asked) == row.status);
    }
    for (const char* path : {"/healthz", "/readyz", "/metrics", "/", "/app.js", "/api.js"}) {
      CAPTURE(path);
      AdminRequest asked = request(path);
      asked.authorization = row.authorization;
      CHECK(status(asked) == 200);
    }
  }
}

TEST_CASE("guard: the unix socket asks for no token, and is for no browser") {
  const AdminPeer peer{true, {}};
  AdminRequest asked = request("/api/stop", "whatever");
  asked.authorization.clear();
  CHECK(status(asked, peer) == 200);
  asked.origin = "http://evil.example";
  CHECK(status(asked, peer) == 403);
}

TEST_CASE("request: what a path and a query may be") {
  const auto read = [](const char* target) {
    Head head;
    head.method = "GET";
    head.target = target;
    return admin_request(head);
  };
  const auto plain = read("/api/keys?q=a%20b+c&limit=5&flag&q2=");
  REQUIRE(plain);
  CHECK(plain->path == "/api/keys");
  CHECK(plain->parameter("q") == "a b c");
  CHECK(plain->parameter("limit") == "5");
  CHECK(plain->parameter("flag").empty());
  CHECK(plain->parameter("none").empty());
  for (const char* bad : {"http://127.0.0.1/", "*", "", "/x?q=%", "/x?q=%4", "/x?q=%zz", "/x?q=%00",
                          "/x?q=%0a", "/x?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q"}) {
    CAPTURE(bad);
    CHECK_FALSE(read(bad));
  }
}

TEST_CASE("request: percent-encoding there and back") {
  for (const std::string text :
       {"api.example.com:8443", "a/b?c#d e%", "<img src=x>", "caf\xc3\xa9", ""}) {
    CAPTURE(text);
    const std::string encoded = percent_encode(text);
    CHECK(encoded.find_first_of("/?# <>") == std::string::npos);
    CHECK(percent_decode(encoded) == text);
  }
}
