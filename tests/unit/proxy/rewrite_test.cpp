#include "proxy/http/rewrite.h"

#include <doctest/doctest.h>

#include <string>

#include "proxy/http/connection_auth.h"
#include "proxy/http/reader.h"

using namespace sluice;

namespace {

// Line ends as in a file, and a Host where HTTP/1.1 wants one.
std::string wire(std::string_view lines) {
  std::string out;
  for (const char c : lines) out += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return out + "\r\n";
}

std::string unwire(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (c != '\r') out += c;
  }
  REQUIRE(out.ends_with("\n\n"));
  out.pop_back();
  return out;
}

struct Parsed {
  explicit Parsed(Reader::Kind kind, std::string_view lines, bool no_body = false)
      : bytes(wire(lines)), reader(kind, 65536) {
    reader.expect_no_body(no_body);
    std::string_view in = bytes;
    REQUIRE(reader.next(in) == Reader::Event::head);
  }
  const Head& head() const { return reader.head(); }

  std::string bytes;
  Reader reader;
};

// What the origin gets.
std::string rewritten(std::string_view lines) {
  const Parsed request(Reader::Kind::request, lines);
  const auto target = parse_absolute_form(request.head().target);
  REQUIRE(target);
  std::string out;
  write_request(out, request.head(), *target, "me", wants_upgrade(request.head()));
  return unwire(out);
}

std::string answered(std::string_view lines, ResponsePlan plan, bool no_body = false) {
  const Parsed response(Reader::Kind::response, lines, no_body);
  std::string out;
  write_response(out, response.head(), plan, "me", "Thu, 12 Mar 2026 09:59:30 GMT");
  return unwire(out);
}

struct Row {
  std::string name, before, after;
};

}  // namespace

TEST_CASE("rewrite: what becomes of a request") {
  const Row rows[] = {
      {"origin form, Host first, Via last", "GET http://a/b?c HTTP/1.1\nHost: a\nX: 1\n",
       "GET /b?c HTTP/1.1\nHost: a\nX: 1\nVia: 1.1 me\n"},
      {"Host is the target's, whatever was said", "GET http://a:8080/ HTTP/1.1\nX: 1\nHost: evil\n",
       "GET / HTTP/1.1\nHost: a:8080\nX: 1\nVia: 1.1 me\n"},
      {"an empty path", "GET http://a HTTP/1.1\nHost: a\n",
       "GET / HTTP/1.1\nHost: a\nVia: 1.1 me\n"},
      {"an empty path with a query", "GET http://a?q HTTP/1.1\nHost: a\n",
       "GET /?q HTTP/1.1\nHost: a\nVia: 1.1 me\n"},
      {"OPTIONS without a path is about the server", "OPTIONS http://a HTTP/1.1\nHost: a\n",
       "OPTIONS * HTTP/1.1\nHost: a\nVia: 1.1 me\n"},
      {"HTTP/1.0 goes on as 1.1", "GET http://a/ HTTP/1.0\n",
       "GET / HTTP/1.1\nHost: a\nVia: 1.0 me\n"},
      {"an HTTP/1.0 client cannot expect a 100",
       "POST http://a/ HTTP/1.0\nContent-Length: 1\nExpect: 100-continue\n",
       "POST / HTTP/1.1\nHost: a\nContent-Length: 1\nVia: 1.0 me\n"},
      {"an IPv6 address keeps its brackets", "GET http://[::1]:81/ HTTP/1.1\nHost: x\n",
       "GET / HTTP/1.1\nHost: [::1]:81\nVia: 1.1 me\n"},
      {"fields keep their order, spelling and number",
       "GET http://a/ HTTP/1.1\nHost: a\nx-B: 2\nCookie: c=1\nX-b:  3 \nAuthorization: "
       "me\nEmpty:\n",
       "GET / HTTP/1.1\nHost: a\nx-B: 2\nCookie: c=1\nX-b: 3\nAuthorization: me\nEmpty: \n"
       "Via: 1.1 me\n"},
      {"hop-by-hop fields stay here",
       "GET http://a/ HTTP/1.1\nHost: a\nConnection: keep-alive\nKeep-Alive: 5\nTE: trailers\n"
       "Upgrade: h2c\nHTTP2-Settings: x\nX: 1\n",
       "GET / HTTP/1.1\nHost: a\nX: 1\nVia: 1.1 me\n"},
      {"Proxy-* never leaves",
       "GET http://a/ HTTP/1.1\nHost: a\nProxy-Authorization: Basic eDp5\nPROXY-Connection: close\n"
       "Proxy-Status: x\nproxy-anything: y\nProxyish: z\n",
       "GET / HTTP/1.1\nHost: a\nProxyish: z\nVia: 1.1 me\n"},
      {"what Connection names stays here",
       "GET http://a/ HTTP/1.1\nHost: a\nConnection: X-One, close,x-two\nconnection: ,X-THREE,\n"
       "X-One: 1\nx-one: 1\nX-Two: 2\nX-Three: 3\nX-Four: 4\n",
       "GET / HTTP/1.1\nHost: a\nX-Four: 4\nVia: 1.1 me\n"},
      {"also what we know by name",
       "GET http://a/ HTTP/1.1\nHost: a\nConnection: accept, Date, content-type, expect, close\n"
       "Accept: x\nDate: d\nContent-Type: t\nExpect: e\nAuthorization: me\n",
       "GET / HTTP/1.1\nHost: a\nAuthorization: me\nVia: 1.1 me\n"},
      {"but it cannot take away routing or framing",
       "POST http://a/ HTTP/1.1\nHost: a\nConnection: host, content-length, via, max-forwards\n"
       "Content-Length: 0\nVia: 1.0 x\nMax-Forwards: 3\n",
       "POST / HTTP/1.1\nHost: a\nVia: 1.0 x\nMax-Forwards: 3\nContent-Length: 0\nVia: 1.1 me\n"},
      {"a length is written anew", "POST http://a/ HTTP/1.1\nHost: a\nContent-Length: 007\n",
       "POST / HTTP/1.1\nHost: a\nContent-Length: 7\nVia: 1.1 me\n"},
      {"so is chunked, and Trailer goes with it",
       "POST http://a/ HTTP/1.1\nHost: a\nTransfer-Encoding: CHUNKED\nTrailer: X\n",
       "POST / HTTP/1.1\nHost: a\nTrailer: X\nTransfer-Encoding: chunked\nVia: 1.1 me\n"},
      {"without the names of fields that will not come",
       "POST http://a/ HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nConnection: y\n"
       "Trailer: Y, X,host, Z\nTrailer: y\n",
       "POST / HTTP/1.1\nHost: a\nTrailer: X, Z\nTransfer-Encoding: chunked\nVia: 1.1 me\n"},
      {"Trailer without chunks means nothing", "GET http://a/ HTTP/1.1\nHost: a\nTrailer: X\n",
       "GET / HTTP/1.1\nHost: a\nVia: 1.1 me\n"},
      {"Expect goes along",
       "POST http://a/ HTTP/1.1\nHost: a\nContent-Length: 1\nExpect: 100-continue\n",
       "POST / HTTP/1.1\nHost: a\nExpect: 100-continue\nContent-Length: 1\nVia: 1.1 me\n"},
      {"an upgrade that may be relayed",
       "GET http://a/ HTTP/1.1\nHost: a\nConnection: Upgrade, X\nUpgrade: websocket\nX: 1\n",
       "GET / HTTP/1.1\nHost: a\nUpgrade: websocket\nConnection: Upgrade\nVia: 1.1 me\n"},
      {"Max-Forwards counts down for OPTIONS and TRACE",
       "TRACE http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 5\n",
       "TRACE / HTTP/1.1\nHost: a\nMax-Forwards: 4\nVia: 1.1 me\n"},
      {"by one at least",
       "OPTIONS http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 99999999999999999999\n",
       "OPTIONS / HTTP/1.1\nHost: a\nMax-Forwards: 999999\nVia: 1.1 me\n"},
      {"and for nothing else", "GET http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 5\n",
       "GET / HTTP/1.1\nHost: a\nMax-Forwards: 5\nVia: 1.1 me\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(rewritten(row.before) == row.after);
  }
}

TEST_CASE("rewrite: however many names Connection has, none of them leaves") {
  std::string request = "GET http://a/ HTTP/1.1\nHost: a\nConnection: x0";
  for (int i = 1; i < 500; ++i) request += ", x" + std::to_string(i);
  request += "\n";
  for (int i = 0; i < 500; ++i) request += "X" + std::to_string(i) + ": 1\n";
  CHECK(rewritten(request) == "GET / HTTP/1.1\nHost: a\nVia: 1.1 me\n");
}

TEST_CASE("rewrite: what becomes of a response") {
  struct ResponseRow {
    std::string name, before, after;
    ResponsePlan plan{};
    bool no_body = false;
  };
  const std::string date = "Date: Thu, 12 Mar 2026 09:59:30 GMT\n";
  const ResponseRow rows[] = {
      {"a length",
       "HTTP/1.1 200 Fine\nContent-Length: 05\nDate: d\nX: 1\n",
       "HTTP/1.1 200 Fine\nDate: d\nX: 1\nContent-Length: 5\nVia: 1.1 me\n",
       {Framing::length}},
      {"a date where there was none",
       "HTTP/1.1 200 OK\nContent-Length: 0\n",
       "HTTP/1.1 200 OK\n" + date + "Content-Length: 0\nVia: 1.1 me\n",
       {Framing::length}},
      {"chunks from a body until close",
       "HTTP/1.0 200 OK\nDate: d\n",
       "HTTP/1.1 200 OK\nDate: d\nTransfer-Encoding: chunked\nVia: 1.0 me\n",
       {Framing::chunked}},
      {"426 says what to upgrade to",
       "HTTP/1.1 426 Upgrade Required\nDate: d\nUpgrade: x\nContent-Length: 0\n",
       "HTTP/1.1 426 Upgrade Required\nDate: d\nUpgrade: x\nContent-Length: 0\nVia: 1.1 me\n"
       "Connection: Upgrade, close\n",
       {Framing::length, true, true}},
      {"until close from chunks, for an old client",
       "HTTP/1.1 200 OK\nDate: d\nTransfer-Encoding: chunked\nTrailer: X\n",
       "HTTP/1.1 200 OK\nDate: d\nVia: 1.1 me\nConnection: close\n",
       {Framing::until_close, true}},
      {"hop-by-hop and Proxy-* stay here, Proxy-Status goes on (RFC 9209)",
       "HTTP/1.1 200 OK\nDate: d\nConnection: X-Hop, close\nX-Hop: 1\nKeep-Alive: 5\nUpgrade: h2\n"
       "Proxy-Authenticate: Basic\nProxy-Connection: close\nProxy-Status: cache; hit\n"
       "Content-Length: 0\n",
       "HTTP/1.1 200 OK\nDate: d\nProxy-Status: cache; hit\nContent-Length: 0\nVia: 1.1 me\n",
       {Framing::length}},
      {"Set-Cookie is never put together",
       "HTTP/1.1 200 OK\nDate: d\nSet-Cookie: a=1\nSet-Cookie: b=2\nContent-Length: 0\n",
       "HTTP/1.1 200 OK\nDate: d\nSet-Cookie: a=1\nSet-Cookie: b=2\nContent-Length: 0\nVia: 1.1 "
       "me\n",
       {Framing::length}},
      {"HEAD tells the length a GET would have",
       "HTTP/1.1 200 OK\nDate: d\nContent-Length: 5\n",
       "HTTP/1.1 200 OK\nDate: d\nContent-Length: 5\nVia: 1.1 me\n",
       {Framing::none},
       true},
      {"so does 304",
       "HTTP/1.1 304 Not Modified\nDate: d\nContent-Length: 5\n",
       "HTTP/1.1 304 Not Modified\nDate: d\nContent-Length: 5\nVia: 1.1 me\n",
       {Framing::none}},
      {"204 never does",
       "HTTP/1.1 204 No Content\nDate: d\nContent-Length: 5\n",
       "HTTP/1.1 204 No Content\nDate: d\nVia: 1.1 me\n",
       {Framing::none}},
      {"1xx has neither length nor date",
       "HTTP/1.1 103 Early Hints\nContent-Length: 5\nLink: l\n",
       "HTTP/1.1 103 Early Hints\nLink: l\nVia: 1.1 me\n",
       {Framing::none}},
      {"101 keeps what it upgrades to",
       "HTTP/1.1 101 Go\nConnection: upgrade\nUpgrade: websocket\n",
       "HTTP/1.1 101 Go\nUpgrade: websocket\nVia: 1.1 me\nConnection: Upgrade\n",
       {Framing::none, false, true}},
      {"an empty phrase stays empty",
       "HTTP/1.1 200\nDate: d\nContent-Length: 1\n",
       "HTTP/1.1 200 \nDate: d\nContent-Length: 1\nVia: 1.1 me\n",
       {Framing::length}},
  };
  for (const ResponseRow& row : rows) {
    CAPTURE(row.name);
    CHECK(answered(row.before, row.plan, row.no_body) == row.after);
  }
}

TEST_CASE("rewrite: lines that grow find room") {
  std::string request = "OPTIONS http://a/ HTTP/1.1\nHost: a\nMax-Forwards: 999999\n";
  std::string forwarded = "OPTIONS / HTTP/1.1\nHost: a\nMax-Forwards: 999998\n";
  for (int i = 0; i < 990; ++i) {
    request += "Max-Forwards:\n";
    forwarded += "Max-Forwards: 999998\n";
  }
  const Parsed parsed(Reader::Kind::request, request);
  CHECK_FALSE(has_valid_max_forwards(parsed.head()));
  CHECK(rewritten(request) == forwarded + "Via: 1.1 me\n");
}

TEST_CASE("rewrite: which upgrades are relayed") {
  struct UpgradeRow {
    std::string request;
    bool relayed;
  };
  const UpgradeRow rows[] = {
      {"GET http://a/ HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: websocket\n", true},
      {"GET http://a/ HTTP/1.1\nHost: a\nConnection: x, UPGRADE\nUpgrade: a, b/2\n", true},
      {"GET http://a/ HTTP/1.1\nHost: a\nUpgrade: websocket\n", false},
      {"GET http://a/ HTTP/1.1\nHost: a\nConnection: upgrade\n", false},
      {"GET http://a/ HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: ,\n", false},
      {"GET http://a/ HTTP/1.0\nConnection: upgrade\nUpgrade: websocket\n", false},
      {"POST http://a/ HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: websocket\n", false},
      {"GET http://a/ HTTP/1.1\nHost: a\nContent-Length: 1\nConnection: upgrade\nUpgrade: "
       "websocket\n",
       false},
      {"GET http://a/ HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: h2c\n", false},
      {"GET http://a/ HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: websocket, H2C\n", false},
      {"GET http://a/ HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: websocket\nUpgrade: "
       "http/2.0\n",
       false},
  };
  for (const UpgradeRow& row : rows) {
    CAPTURE(row.request);
    CHECK(wants_upgrade(Parsed(Reader::Kind::request, row.request).head()) == row.relayed);
  }
}

TEST_CASE("rewrite: to what a server may switch") {
  struct SwitchRow {
    std::string response, offered;
    bool asked;
  };
  const SwitchRow rows[] = {
      {"HTTP/1.1 101 Go\nUpgrade: websocket\n", "websocket,", true},
      {"HTTP/1.1 101 Go\nUpgrade: WebSocket\n", "a/1, websocket,", true},
      {"HTTP/1.1 101 Go\nUpgrade: a/1, websocket\n", "websocket,a/1,", true},
      {"HTTP/1.1 101 Go\nUpgrade: websocket, h2c\n", "websocket,", false},
      {"HTTP/1.1 101 Go\nUpgrade: h2c\n", "websocket,", false},
      {"HTTP/1.1 101 Go\nUpgrade: ,\n", "websocket,", false},
      {"HTTP/1.1 101 Go\n", "websocket,", false},
      {"HTTP/1.1 101 Go\nUpgrade: websocket\n", "", false},
  };
  for (const SwitchRow& row : rows) {
    CAPTURE(row.response);
    CHECK(switches_as_asked(Parsed(Reader::Kind::response, row.response).head(), row.offered) ==
          row.asked);
  }
  const Parsed request(Reader::Kind::request,
                       "GET http://a/ HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: a\n"
                       "Upgrade: b, c\n");
  CHECK(offered_protocols(request.head()) == "a,b, c,");
}

TEST_CASE("rewrite: which authentication is a connection's") {
  const auto is = [](Reader::Kind kind, const std::string& field) {
    const std::string start =
        kind == Reader::Kind::request ? "GET http://a/ HTTP/1.1\nHost: a\n" : "HTTP/1.1 401 No\n";
    return authenticates_connection(Parsed(kind, start + field + "\n").head());
  };
  for (const char* scheme : {"NTLM abc", "negotiate YII", "Kerberos x", "NTLM"}) {
    CAPTURE(scheme);
    CHECK(is(Reader::Kind::request, std::string("Authorization: ") + scheme));
    CHECK(
        is(Reader::Kind::response, std::string("WWW-Authenticate: Basic realm=\"x\", ") + scheme));
  }
  CHECK_FALSE(is(Reader::Kind::request, "Authorization: Basic TlRMTQ=="));
  CHECK_FALSE(is(Reader::Kind::request, "Authorization: Bearer ntlm"));
  CHECK_FALSE(is(Reader::Kind::request, "X: NTLM"));
  CHECK_FALSE(is(Reader::Kind::response, "WWW-Authenticate: Basic realm=\"ntlm\""));
}

TEST_CASE("rewrite: Max-Forwards") {
  const auto hops = [](const std::string& method, const std::string& value) {
    return max_forwards(
        Parsed(Reader::Kind::request,
               method + " http://a/ HTTP/1.1\nHost: a\nMax-Forwards: " + value + "\n")
            .head());
  };
  CHECK(hops("TRACE", "0") == 0);
  CHECK(hops("OPTIONS", "10") == 10);
  CHECK(hops("OPTIONS", "999999") == 999999);
  CHECK(hops("OPTIONS", "1000001") == 1000000);
  CHECK(hops("OPTIONS", "99999999999999999999") == 1000000);
  for (const char* junk : {"", "-1", "+1", "1 ,2", "x", "1x", "99999999999999999999x"})
    CHECK(hops("TRACE", junk) == -1);
  CHECK(hops("GET", "0") == -1);
  CHECK(max_forwards(Parsed(Reader::Kind::request, "TRACE http://a/ HTTP/1.1\nHost: a\n").head()) ==
        -1);
}
