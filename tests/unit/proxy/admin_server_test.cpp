#include "proxy/admin/server.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proxy/admin/client.h"
#include "unit/proxy/fake_source.h"
#include "unit/store/support.h"

using namespace sluice;
using nlohmann::json;
using testing::FakeSource;
using testing::slurp;
using testing::TempDirectory;

namespace {

// A connection as a stranger's: any bytes out, whatever comes in.
class Wire {
 public:
  explicit Wire(const Address& address) {
    sockaddr_storage storage;
    const socklen_t size = address.to_sockaddr(storage);
    socket_ = OwnedSocket(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(socket_.get(), reinterpret_cast<sockaddr*>(&storage), size) == 0);
  }
  void send(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::send(socket_.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;  // it may have been refused half way
      at += static_cast<std::size_t>(n);
    }
  }
  std::string read_until(const std::string& mark) {
    while (got_.find(mark) == std::string::npos && fill()) {}
    const std::size_t end = got_.find(mark);
    REQUIRE(end != std::string::npos);
    const std::string out = got_.substr(0, end + mark.size());
    got_.erase(0, end + mark.size());
    return out;
  }
  std::string read_to_end() {
    while (fill()) {}
    return std::exchange(got_, {});
  }
  // Head and body of one answer with a length.
  std::string answer() {
    const std::string head = read_until("\r\n\r\n");
    const std::size_t at = head.find("Content-Length: ");
    REQUIRE(at != std::string::npos);
    const std::size_t size = std::stoul(head.substr(at + 16));
    while (got_.size() < size && fill()) {}
    const std::string out = head + got_.substr(0, size);
    got_.erase(0, size);
    return out;
  }

 private:
  bool fill() {
    pollfd one{socket_.get(), POLLIN, 0};
    REQUIRE(poll(&one, 1, 20'000) == 1);
    char buffer[64 * 1024];
    const ssize_t n = recv(socket_.get(), buffer, sizeof buffer, 0);
    if (n > 0) got_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }

  OwnedSocket socket_;
  std::string got_;
};

struct Running {
  TempDirectory folder;
  FakeSource source;
  std::unique_ptr<AdminServer> server;
  std::string token;

  Running() {
    Config config;
    config.admin.listen = "127.0.0.1:0";
    auto made = AdminServer::make(config, folder.path());
    REQUIRE(made);
    server = std::move(*made);
    REQUIRE(server->notice().empty());
    token = slurp(folder.path() + "/admin.token");
    token.pop_back();
    server->start(source, {});
  }
  ~Running() { server.reset(); }

  Wire wire() { return Wire(server->address()); }
  std::string head(const std::string& line, const std::string& more = "") {
    return line + " HTTP/1.1\r\nHost: " + server->address().text() + "\r\nAuthorization: Bearer " +
           token + "\r\n" + more + "\r\n";
  }
  std::string ask(const std::string& line, const std::string& more = "",
                  const std::string& body = "") {
    Wire wire = this->wire();
    wire.send(
        head(line, more + (body.empty() ? ""
                                        : "Content-Type: application/json\r\nContent-Length: " +
                                              std::to_string(body.size()) + "\r\n")) +
        body);
    return wire.answer();
  }
  json read(const std::string& path) {
    const std::string answer = ask("GET " + path);
    REQUIRE(answer.starts_with("HTTP/1.1 200 "));
    return json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
  }
};

std::string status_line(const std::string& answer) { return answer.substr(0, answer.find('\r')); }

}  // namespace

TEST_CASE("admin: keys, one key, status, budget, anomalies and events as JSON") {
  Running admin;
  admin.source.with([](auto& state) {
    state.keys["a.test:8443"] = testing::shut_key("a.test:8443", 300s, 429, "slow <down>");
    state.keys["b.test"] = testing::closed_key("b.test", 7);
    state.jobs = {{"nightly", 3, 10, 1, 0, false, 0.5, 0, 0, "4711", 2, 1, 1500ms}};
    state.budget = {
        "USD", {{"daily", 10, 2.5, 0, 0.5, 0.8, UtcTime{}}}, {{"job", "nightly", 0.5, 3}}};
    state.anomalies = {{"thrash", "b.test", "a loop", "alert", UtcTime{1000s}, std::nullopt}};
    state.totals.refusals = {{"breaker-open", 4}};
  });
  admin.source.tell(EventKind::transition, "a.test:8443", "it is cooling down");
  admin.source.tell(EventKind::store, "", "the store is well");

  const json keys = admin.read("/api/keys?sort=key");
  CHECK(keys["total"] == 2);
  CHECK(keys["keys"][0]["key"] == "a.test:8443");
  CHECK(keys["keys"][0]["state"] == "open");
  CHECK(keys["keys"][0]["cause"] == "named-time");
  CHECK(keys["keys"][0]["said"] == "slow <down>");
  CHECK(keys["keys"][0]["cooldown_left_ms"] > 290'000);
  CHECK(keys["keys"][1]["requests"] == 7);
  CHECK_FALSE(keys["keys"][1].contains("history"));
  CHECK(admin.read("/api/keys?history=1")["keys"][0]["history"].contains("delay_ms"));
  CHECK(admin.read("/api/keys/a.test%3A8443")["status"] == 429);
  CHECK(admin.read("/api/keys/a.test:8443")["level"] == 1);
  CHECK(status_line(admin.ask("GET /api/keys/none.test")) == "HTTP/1.1 404 Not Found");
  CHECK(status_line(admin.ask("GET /api/keys?limit=many")) == "HTTP/1.1 400 Bad Request");

  const json status = admin.read("/api/status");
  CHECK(status["keys"]["open"] == 1);
  CHECK(status["refusals"]["breaker-open"] == 4);
  CHECK(status["jobs"][0]["name"] == "nightly");
  CHECK(status["jobs"][0]["run"] == "4711");
  CHECK(status["jobs"][0]["refused"] == 2);
  CHECK(status["jobs"][0]["held"] == 1);
  CHECK(status["jobs"][0]["waited_ms"] == 1500);
  CHECK(status["stop"]["on"] == false);
  CHECK(admin.read("/api/budget")["periods"][0]["spent"] == 2.5);
  CHECK(admin.read("/api/anomalies")["anomalies"][0]["since"] == "1970-01-01T00:16:40.000Z");

  const json events = admin.read("/api/events");
  CHECK(events["last"] == 2);
  CHECK(events["events"][0]["text"] == "it is cooling down");
  CHECK(admin.read("/api/events?limit=1")["events"][0]["sequence"] == 2);
  CHECK(admin.read("/api/events?after=1")["events"].size() == 1);
  CHECK(admin.read("/api/events?key=a.test:8443")["events"].size() == 1);
}

TEST_CASE("admin: orders reach the source and their answer waits for it") {
  Running admin;
  const std::string opened =
      admin.ask("POST /api/keys/a%2Fb.test/open", "", R"({"for":"90s","reason":"noise"})");
  CHECK(opened.ends_with("{\"done\":\"a/b.test is shut for 1 min 30 s by an operator\"}\n"));
  CHECK(admin.read("/api/keys")["keys"][0]["state"] == "open");  // at once
  admin.ask("POST /api/keys/a%2Fb.test/close");
  CHECK(admin.read("/api/keys")["keys"][0]["state"] == "closed");
  admin.ask("POST /api/stop", "", R"({"reason":"fire"})");
  CHECK(admin.read("/api/status")["stop"]["reason"] == "fire");
  admin.ask("POST /api/resume");
  CHECK(admin.source.with([](auto& state) { return state.orders; }) ==
        std::vector<std::string>{"open a/b.test 1 min 30 s noise", "close a/b.test", "stop fire",
                                 "resume"});
  const std::string unknown = admin.ask("POST /api/keys/unknown.test/close");
  CHECK(status_line(unknown) == "HTTP/1.1 404 Not Found");
  CHECK(unknown.ends_with("{\"error\":\"nothing is known about unknown.test\"}\n"));
  admin.source.with([](auto& state) { state.failing = "the disk is full"; });
  const std::string refused = admin.ask("POST /api/keys/a.test/close");
  CHECK(status_line(refused) == "HTTP/1.1 503 Service Unavailable");
  CHECK(refused.ends_with("{\"error\":\"the disk is full\"}\n"));
}

TEST_CASE("admin: a reason that is too long is cut between its letters, and refuses nothing") {
  std::string umlauts;
  for (int i = 0; i < 150; ++i) umlauts += "\u00fc";
  const std::pair<std::string, std::string> rows[] = {
      {umlauts, umlauts.substr(0, 200)},
      {"x" + umlauts, "x" + umlauts.substr(0, 198)},
      {std::string(500, 'y'), std::string(200, 'y')},
      {std::string(200, 'y'), std::string(200, 'y')},
  };
  for (const auto& [given, kept] : rows) {
    Running admin;
    const std::string answer = admin.ask("POST /api/stop", "", "{\"reason\":\"" + given + "\"}");
    CHECK(status_line(answer) == "HTTP/1.1 200 OK");
    CHECK(admin.source.with([](auto& state) { return state.orders; }) ==
          std::vector<std::string>{"stop " + kept});
  }
}

TEST_CASE("admin: an order that is not understood orders nothing") {
  Running admin;
  const std::pair<const char*, const char*> rows[] = {
      {"[]", "the body must be a JSON object"},
      {"{", "the body must be a JSON object"},
      {R"({"for":5})", "every value in the body is a string"},
      {R"({"for":"soon"})", "for: "},
      {R"({"for":"0s"})", "for: must be longer than nothing"},
      {R"({"until":"x"})", "the body may have"},
  };
  for (const auto& row : rows) {
    const auto& body = row.first;
    const auto& sentence = row.second;
    CAPTURE(body);
    const std::string answer = admin.ask("POST /api/keys/a.test/open", "", body);
    CHECK(status_line(answer) == "HTTP/1.1 400 Bad Request");
    CHECK(answer.find(sentence) != std::string::npos);
  }
  const std::string form = "reason=x";
  Wire wire = admin.wire();
  wire.send(admin.head("POST /api/stop", "Content-Type: text/plain\r\nContent-Length: 8\r\n") +
            form);
  CHECK(wire.answer().find("must be application/json") != std::string::npos);
  CHECK(status_line(admin.ask("GET /api/stop")) == "HTTP/1.1 405 Method Not Allowed");
  CHECK(status_line(admin.ask("DELETE /api/keys")) == "HTTP/1.1 405 Method Not Allowed");
  CHECK(status_line(admin.ask("POST /api/keys/a.test/burn")) == "HTTP/1.1 404 Not Found");
  CHECK(admin.source.with([](auto& state) { return state.orders.size(); }) == 0);
}

TEST_CASE("admin: a stream gives what is new as it happens, and goes on where it was cut") {
  Running admin;
  admin.source.tell(EventKind::transition, "a.test", "first");
  Wire wire = admin.wire();
  wire.send(admin.head("GET /api/events", "Accept: text/event-stream\r\n"));
  CHECK(wire.read_until("\r\n\r\n").find("Content-Type: text/event-stream") != std::string::npos);
  wire.read_until(": sluice\n\n");
  admin.source.tell(EventKind::anomaly, "a.test", "second\nline");
  const std::string second = wire.read_until("\n\n");
  CHECK(second.starts_with("id: 2\ndata: {\"sequence\":2,"));
  CHECK(json::parse(second.substr(second.find('{')))["text"] == "second\nline");

  Wire again = admin.wire();
  again.send(admin.head("GET /api/events", "Accept: text/event-stream\r\nLast-Event-ID: 0\r\n"));
  again.read_until(": sluice\n\n");
  CHECK(again.read_until("\n\n").starts_with("id: 1\n"));
  CHECK(again.read_until("\n\n").starts_with("id: 2\n"));
}

TEST_CASE("admin: followers are few, and one that reads no more makes room") {
  Running admin;
  const auto follow = [&](const char* after) {
    Wire wire = admin.wire();
    wire.send(admin.head("GET /api/events", std::string("Accept: text/event-stream\r\n") +
                                                "Last-Event-ID: " + after + "\r\n"));
    return wire;
  };
  const auto status = [](Wire& wire) { return status_line(wire.read_until("\r\n")); };
  Wire stuck = follow("0");
  CHECK(status(stuck) == "HTTP/1.1 200 OK");
  std::vector<Wire> others;
  for (std::size_t i = 1; i < AdminLoop::kMaxStreams; ++i) {
    others.push_back(follow("1000"));  // nothing comes for these
    CHECK(status(others.back()) == "HTTP/1.1 200 OK");
  }
  Wire one_more = follow("0");
  CHECK(status(one_more) == "HTTP/1.1 503 Service Unavailable");
  CHECK(one_more.read_to_end().find("too many others") != std::string::npos);

  // More than the kernel takes for somebody who does not read.
  admin.source.tell(EventKind::transition, "a.test", std::string(24u << 20, 'x'));
  bool room = false;
  for (int tries = 0; tries < 20'000 && !room; ++tries) {
    Wire next = follow("1000");
    room = status(next) == "HTTP/1.1 200 OK";
  }
  CHECK(room);
}

TEST_CASE("admin: probes, metrics, the page and its headers") {
  Running admin;
  CHECK(admin.ask("GET /healthz").ends_with("\r\n\r\nok\n"));
  admin.source.with([](auto& state) { state.readiness = {false, "the proxy is stopping"}; });
  CHECK(admin.ask("GET /healthz").ends_with("ok\n"));
  const std::string ready = admin.ask("GET /readyz");
  CHECK(status_line(ready) == "HTTP/1.1 503 Service Unavailable");
  CHECK(ready.ends_with("the proxy is stopping\n"));
  CHECK(admin.ask("GET /metrics").find("\nsluice_ready 0\n") != std::string::npos);
  const std::string page = admin.ask("GET /");
  CHECK(page.find("Content-Type: text/html; charset=utf-8\r\n") != std::string::npos);
  CHECK(page.find("Content-Security-Policy: default-src 'self';") != std::string::npos);
  CHECK(page.find("X-Content-Type-Options: nosniff\r\n") != std::string::npos);
  CHECK(page.find("<script type=\"module\" src=\"/app.js\">") != std::string::npos);
  const std::string head = admin.ask("GET /app.js");
  CHECK(head.find("text/javascript") != std::string::npos);
}

TEST_CASE("admin: one connection, many requests, also all at once") {
  Running admin;
  Wire wire = admin.wire();
  std::string many;
  for (int i = 0; i < 20; ++i) many += admin.head("GET /healthz");
  wire.send(many + admin.head("GET /readyz", "Connection: close\r\n"));
  for (int i = 0; i < 20; ++i) CHECK(wire.answer().ends_with("ok\n"));
  CHECK(wire.answer().find("Connection: close") != std::string::npos);
  CHECK(wire.read_to_end().empty());
  Wire slow = admin.wire();
  for (const char c : admin.head("GET /healthz")) slow.send(std::string(1, c));
  CHECK(slow.answer().ends_with("ok\n"));
}

TEST_CASE("admin: hostile bytes are refused and bounded") {
  Running admin;
  const std::string host = "Host: " + admin.server->address().text() + "\r\n";
  const std::string token = "Authorization: Bearer " + admin.token + "\r\n";
  const std::pair<std::string, const char*> rows[] = {
      {std::string("\x16\x03\x01\x02\x00\x01\x00", 7) + "\r\n\r\n", "HTTP/1.1 400"},
      {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 4"},
      {"GET http://evil.example/ HTTP/1.1\r\n" + host + "\r\n", "HTTP/1.1 400"},
      {"CONNECT evil.example:443 HTTP/1.1\r\n" + host + "\r\n", "HTTP/1.1 4"},
      {"GET / HTTP/1.1\r\n" + host + "Host: evil.example\r\n\r\n", "HTTP/1.1 4"},
      {"GET / HTTP/1.1\r\n" + host + "X: " + std::string(20'000, 'x') + "\r\n\r\n", "HTTP/1.1 431"},
      {"GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\n" + host + "\r\n", "HTTP/1.1 4"},
      {"POST /api/stop HTTP/1.1\r\n" + host + token + "Content-Length: 20000\r\n\r\n",
       "HTTP/1.1 413"},
      {"POST /api/stop HTTP/1.1\r\n" + host + token + "Transfer-Encoding: chunked\r\n\r\n8000\r\n" +
           std::string(0x8000, 'x') + "\r\n0\r\n\r\n",
       "HTTP/1.1 413"},
      {"POST /api/stop HTTP/1.1\r\n" + host + token +
           "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
       "HTTP/1.1 400"},
  };
  for (const auto& row : rows) {
    const auto& bytes = row.first;
    const auto& status = row.second;
    CAPTURE(bytes.substr(0, 60));
    Wire wire = admin.wire();
    wire.send(bytes);
    CHECK(wire.read_to_end().starts_with(status));
  }
  CHECK(admin.source.with([](auto& state) { return state.orders.size(); }) == 0);
  CHECK(admin.ask("GET /healthz").ends_with("ok\n"));
}

TEST_CASE("admin: a crowd of idle connections keeps nobody out") {
  Running admin;
  std::vector<Wire> crowd;
  for (std::size_t i = 0; i < AdminLoop::kMaxConnections * 2; ++i) {
    crowd.push_back(admin.wire());
    crowd.back().send(admin.head("GET /healthz"));
    CHECK(crowd.back().answer().ends_with("ok\n"));
  }
  CHECK(admin.ask("GET /readyz").ends_with("ok\n"));
  CHECK(AdminClient(admin.folder.path()).get("/healthz"));
}

TEST_CASE("admin client: asks, orders, and says what is wrong") {
  Running admin;
  struct stat about {};
  REQUIRE(stat((admin.folder.path() + "/admin.sock").c_str(), &about) == 0);
  CHECK(S_ISSOCK(about.st_mode));
  CHECK((about.st_mode & 0777) == 0600);

  const AdminClient client(admin.folder.path());
  admin.source.with([](auto& state) {
    for (int i = 0; i < 1000; ++i) {
      const std::string key = "host-" + std::to_string(i) + ".test";
      state.keys[key] = testing::closed_key(key, 1);
    }
  });
  const auto keys = client.read("/api/keys?limit=1000");  // more than one read can hold
  REQUIRE_MESSAGE(keys, (keys ? "" : keys.error()));
  CHECK((*keys)["keys"].size() == 1000);
  const auto done = client.order("/api/stop", {{"reason", "test"}});
  REQUIRE(done);
  CHECK(*done == "everything is stopped by an operator: test");
  CHECK(client.read("/api/keys/none").error() == "nothing is known about such a key");
  CHECK(client.order("/api/keys/a/open", {{"for", "x"}}).error().starts_with("for: "));
  CHECK(client.get("/nowhere")->status == 404);

  const TempDirectory nobody;
  CHECK(AdminClient(nobody.path()).get("/healthz").error() ==
        "cannot connect to " + nobody.path() + "/admin.sock: No such file or directory");
}

TEST_CASE("admin client: a daemon that does not answer is not waited for for ever") {
  const TempDirectory folder;
  const auto silent = UnixListener::make(folder.path() + "/admin.sock");
  REQUIRE(silent);
  CHECK(AdminClient(folder.path(), 50ms).get("/healthz").error() == "the daemon does not answer");
}

TEST_CASE("unix socket: paths too long for an address, dead files and living owners") {
  const TempDirectory folder;
  const std::string deep = folder.path() + "/" + std::string(120, 'd');
  std::filesystem::create_directory(deep);
  const std::string path = deep + "/admin.sock";
  {
    const auto first = UnixListener::make(path);
    REQUIRE(first);
    CHECK(connect_unix(path));
    const auto second = UnixListener::make(path);
    REQUIRE_FALSE(second);
    CHECK(
        second.error().ends_with("belongs to another running Sluice: this one has no unix socket"));
  }
  CHECK_FALSE(std::filesystem::exists(path));
  testing::spill(path, "what a dead process left");
  CHECK(UnixListener::make(path));
  CHECK(std::distance(std::filesystem::directory_iterator(deep), {}) == 0);
}

TEST_CASE("admin: where it may listen") {
  Config config;
  CHECK_FALSE(admin_listen_problem(config));
  config.admin.listen = "off";
  CHECK_FALSE(admin_listen_problem(config));
  for (const char* wide : {"0.0.0.0:7879", "[::]:7879", "192.0.2.1:7879"}) {
    CAPTURE(wide);
    config = {};
    config.admin.listen = wide;
    CHECK(admin_listen_problem(config)->find("can be reached from other machines") !=
          std::string::npos);
    config.access.clients_given = true;
    CHECK_FALSE(admin_listen_problem(config));
  }
}
