#include "proxy/net/resolver.h"

#include <doctest/doctest.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proxy/net/hosts_file.h"
#include "proxy/net/resolver_cache.h"
#include "proxy/net/socket.h"

using namespace sluice;
using Status = Resolution::Status;

namespace {

struct Loop {
  event_base* base = event_base_new();
  ~Loop() { event_base_free(base); }

  // Turns until it is so; a test that waits for what never comes ends by the timer.
  void until(const std::function<bool()>& so) {
    bool late = false;
    event* timer = event_new(
        base, -1, 0, [](evutil_socket_t, short, void* flag) { *static_cast<bool*>(flag) = true; },
        &late);
    const timeval limit = {10, 0};
    event_add(timer, &limit);
    while (!so() && !late) event_base_loop(base, EVLOOP_ONCE);
    event_free(timer);
    REQUIRE_FALSE(late);
  }
  void turn() { event_base_loop(base, EVLOOP_NONBLOCK); }
};

struct Files {
  std::string dir;
  Files() {
    char path[] = "/tmp/sluice-resolver-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    dir = path;
    write("hosts", "");
  }
  ~Files() {
    for (const char* name : {"hosts", "resolv.conf"}) unlink((dir + "/" + name).c_str());
    rmdir(dir.c_str());
  }
  void write(const char* name, const std::string& text) const {
    std::ofstream(dir + "/" + name) << text;
  }
};

// A name server on the same loop that says what the test scripted.
class NameServer {
 public:
  enum class Rcode { ok = 0, servfail = 2, nxdomain = 3, silence = 99 };
  struct Says {
    Rcode rcode = Rcode::ok;
    std::vector<const char*> addresses;
    std::uint32_t ttl = 60;
  };
  std::map<std::pair<std::string, char>, Says> script;  // {name, '4' or '6'}; else NXDOMAIN
  std::map<std::string, int> asked;                     // "example.com 4" -> how often
  std::map<std::string, int> asked_over_tcp;
  bool speaks_tcp = true;

  explicit NameServer(event_base* base) {
    // A port that is free for datagrams may be taken for TCP.
    for (int tries = 0; tries < 100 && !listener_; ++tries) {
      bind_datagrams();
      listen_on_tcp(base);
    }
    REQUIRE(listener_ != nullptr);
    event_ = event_new(
        base, socket_.get(), EV_READ | EV_PERSIST,
        [](evutil_socket_t, short, void* self) { static_cast<NameServer*>(self)->on_query(); },
        this);
    event_add(event_, nullptr);
  }
  ~NameServer() {
    event_free(event_);
    evconnlistener_free(listener_);
  }

  std::string conf(const std::string& more = "") const {
    return "nameserver " + address_.text() + "\n" + more;
  }
  int total() const {
    int sum = 0;
    for (const auto& [what, count] : asked) sum += count;
    return sum;
  }

 private:
  void on_query() {
    unsigned char query[512];
    sockaddr_storage from;
    socklen_t length = sizeof from;
    const ssize_t size = recvfrom(socket_.get(), query, sizeof query, 0,
                                  reinterpret_cast<sockaddr*>(&from), &length);
    REQUIRE(size > 16);
    const std::string reply = this->reply(query, false);
    if (reply.empty()) return;
    sendto(socket_.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from),
           length);
  }

  void bind_datagrams() {
    socket_ = OwnedSocket(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
    sockaddr_storage storage;
    socklen_t length = parse_address("127.0.0.1:0")->to_sockaddr(storage);
    auto* generic = reinterpret_cast<sockaddr*>(&storage);
    REQUIRE(bind(socket_.get(), generic, length) == 0);
    REQUIRE(getsockname(socket_.get(), generic, &length) == 0);
    address_ = Address::from_sockaddr(generic, length);
  }

  void listen_on_tcp(event_base* base) {
    sockaddr_storage storage;
    const socklen_t length = address_.to_sockaddr(storage);
    listener_ = evconnlistener_new_bind(
        base,
        [](evconnlistener* listener, evutil_socket_t fd, sockaddr*, int, void* self) {
          auto* server = static_cast<NameServer*>(self);
          if (!server->speaks_tcp) {
            evutil_closesocket(fd);
            return;
          }
          bufferevent* client =
              bufferevent_socket_new(evconnlistener_get_base(listener), fd, BEV_OPT_CLOSE_ON_FREE);
          bufferevent_setcb(
              client, on_tcp_query, nullptr,
              [](bufferevent* gone, short, void*) { bufferevent_free(gone); }, self);
          bufferevent_enable(client, EV_READ);
        },
        this, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, -1,
        reinterpret_cast<sockaddr*>(&storage), static_cast<int>(length));
  }

  // The answer comes in two pieces: its length tells where it ends.
  static void on_tcp_query(bufferevent* client, void* self) {
    unsigned char query[512];
    const std::size_t size = bufferevent_read(client, query, sizeof query);
    REQUIRE(size > 18);
    REQUIRE(query[0] * 256U + query[1] == size - 2);
    const std::string reply = static_cast<NameServer*>(self)->reply(query + 2, true);
    const char prefix[] = {static_cast<char>(reply.size() >> 8), static_cast<char>(reply.size())};
    bufferevent_write(client, prefix, sizeof prefix);
    bufferevent_flush(client, EV_WRITE, BEV_FLUSH);
    bufferevent_write(client, reply.data(), reply.size());
  }

  // Empty: none is given.
  std::string reply(unsigned char* query, bool over_tcp) {
    std::string name;
    std::size_t at = 12;
    for (; query[at] != 0; at += query[at] + 1U)
      name += (name.empty() ? "" : ".") +
              std::string(reinterpret_cast<char*>(query) + at + 1, query[at]);
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    const char type = query[at + 2] == 1 ? '4' : '6';
    ++(over_tcp ? asked_over_tcp : asked)[name + " " + type];
    const auto found = script.find({name, type});
    const Says says = found == script.end() ? Says{Rcode::nxdomain, {}, 0} : found->second;
    if (says.rcode == Rcode::silence) return {};
    std::string reply(reinterpret_cast<char*>(query), at + 5);
    reply[2] = '\x81';
    reply[3] = static_cast<char>(0x80 | static_cast<int>(says.rcode));
    reply[7] = static_cast<char>(says.addresses.size());
    for (std::size_t i = 8; i < 12; ++i) reply[i] = 0;
    if (!over_tcp && says.addresses.size() > kFitIntoDatagram) {
      reply[2] |= '\x02';
      reply[7] = 0;
      return reply;
    }
    for (const char* text : says.addresses) {
      const Address ip = *parse_ip(text);
      const std::size_t bytes = type == '4' ? 4 : 16;
      reply +=
          std::string("\xc0\x0c\0", 3) + (type == '4' ? '\x01' : '\x1c') + std::string("\0\x01", 2);
      for (int shift = 24; shift >= 0; shift -= 8) reply += static_cast<char>(says.ttl >> shift);
      reply += '\0';
      reply += static_cast<char>(bytes);
      reply.append(reinterpret_cast<const char*>(ip.bytes.data()), bytes);
    }
    return reply;
  }

  static constexpr std::size_t kFitIntoDatagram = 4;
  OwnedSocket socket_;
  Address address_;
  event* event_ = nullptr;
  evconnlistener* listener_ = nullptr;
};
using Rcode = NameServer::Rcode;

struct World {
  Loop loop;
  Files files;
  NameServer server{loop.base};
  Instant now{1h};
  std::unique_ptr<Resolver> resolver;

  explicit World(const std::string& conf = "",
                 const std::map<std::string, std::string>& fixed = {}) {
    files.write("resolv.conf", server.conf(conf));
    ResolverOptions options;
    options.hosts_file = files.dir + "/hosts";
    options.resolv_conf = files.dir + "/resolv.conf";
    options.now = [this] { return now; };
    resolver = std::make_unique<Resolver>(loop.base, fixed, options);
  }
  ~World() {
    resolver.reset();
    loop.turn();  // evdns tells its last callbacks that it is gone
  }

  Resolution ask(std::string_view host) {
    std::optional<Resolution> said;
    const auto handle = resolver->resolve(host, [&](const Resolution& r) { said = r; });
    CHECK_FALSE(said);  // never inside the call
    loop.until([&] { return said.has_value(); });
    return *said;
  }
};

std::string listed(const Resolution& resolution) {
  std::string text;
  for (const Address& address : resolution.addresses)
    text += (text.empty() ? "" : " ") + address.ip_text();
  return text;
}

}  // namespace

TEST_CASE("resolver: what needs no DNS") {
  World world("", {{"Api.Test", "127.0.0.9"}, {"six.test", "::6"}});
  world.files.write("hosts",
                    "# ours\n10.1.1.1 printer Printer.lan # both\n::5 printer\nrubbish x\n");
  struct Row {
    const char* host;
    Status status;
    const char* addresses;
  };
  const Row rows[] = {
      {"10.0.0.1", Status::ok, "10.0.0.1"},
      {"::1", Status::ok, "::1"},
      {"[::1]", Status::ok, "::1"},
      {"::ffff:10.0.0.1", Status::ok, "10.0.0.1"},
      {"api.test", Status::ok, "127.0.0.9"},
      {"API.TEST.", Status::ok, "127.0.0.9"},
      {"six.test", Status::ok, "::6"},
      {"localhost", Status::ok, "127.0.0.1 ::1"},
      {"a.b.LocalHost.", Status::ok, "127.0.0.1 ::1"},
      {"PRINTER", Status::ok, "10.1.1.1 ::5"},
      {"printer.lan", Status::ok, "10.1.1.1"},
      {"127.1", Status::bad_name, ""},
      {"2130706433", Status::bad_name, ""},
      {"a b", Status::bad_name, ""},
      {"", Status::bad_name, ""},
      {"a..b", Status::bad_name, ""},
  };
  for (const Row& r : rows) {
    CAPTURE(r.host);
    const Resolution* found = world.resolver->find(r.host);
    REQUIRE(found != nullptr);
    CHECK(found->status == r.status);
    CHECK(listed(*found) == r.addresses);
    CHECK(listed(world.ask(r.host)) == r.addresses);
  }
  CHECK(world.resolver->find("elsewhere.example") == nullptr);
  CHECK(world.server.total() == 0);
}

TEST_CASE("resolver: both families, IPv6 first, kept for the shorter TTL") {
  World world;
  world.server.script[{"example.com", '4'}] = {Rcode::ok, {"192.0.2.1", "192.0.2.2"}, 30};
  world.server.script[{"example.com", '6'}] = {Rcode::ok, {"2001:db8::1"}, 60};
  CHECK(listed(world.ask("example.com")) == "2001:db8::1 192.0.2.1 192.0.2.2");
  world.now += 29s;
  REQUIRE(world.resolver->find("EXAMPLE.com") != nullptr);
  CHECK(listed(*world.resolver->find("EXAMPLE.com")) == "2001:db8::1 192.0.2.1 192.0.2.2");
  CHECK(world.server.total() == 2);
  world.now += 1s;
  CHECK(world.resolver->find("example.com") == nullptr);
}

TEST_CASE("resolver: a TTL of 0 is 1 s, a TTL of a day is 300 s") {
  struct Row {
    std::uint32_t ttl;
    Duration kept;
  };
  for (const Row& r : {Row{0, 1s}, Row{86400, 300s}}) {
    CAPTURE(r.ttl);
    World world;
    world.server.script[{"a.example", '4'}] = {Rcode::ok, {"192.0.2.1"}, r.ttl};
    CHECK(listed(world.ask("a.example")) == "192.0.2.1");
    world.now += r.kept - 1us;
    CHECK(world.resolver->find("a.example") != nullptr);
    world.now += 1us;
    CHECK(world.resolver->find("a.example") == nullptr);
  }
}

TEST_CASE("resolver: how a name can fail, and for how long that is believed") {
  struct Row {
    const char* name;
    Rcode v4, v6;
    Duration passes;  // on the clock while the question is open
    Status status;
    Duration kept;
  };
  const Row rows[] = {
      {"no such name", Rcode::nxdomain, Rcode::nxdomain, 0s, Status::not_found, 5s},
      {"no address", Rcode::ok, Rcode::ok, 0s, Status::not_found, 5s},
      {"server failure", Rcode::servfail, Rcode::servfail, 0s, Status::failed, 1s},
      {"no answer", Rcode::silence, Rcode::silence, 6s, Status::timed_out, 1s},
      {"half no name, half silence", Rcode::nxdomain, Rcode::silence, 6s, Status::not_found, 5s},
      {"half no address, half silence", Rcode::ok, Rcode::silence, 6s, Status::timed_out, 1s},
  };
  for (const Row& r : rows) {
    CAPTURE(r.name);
    World world("options timeout:0.05 attempts:1\n");
    world.server.script[{"x.example", '4'}] = {r.v4, {}, 0};
    world.server.script[{"x.example", '6'}] = {r.v6, {}, 0};
    std::optional<Resolution> said;
    const auto handle =
        world.resolver->resolve("x.example", [&](const Resolution& got) { said = got; });
    world.now += r.passes;
    world.loop.until([&] { return said.has_value(); });
    CHECK(said->status == r.status);
    CHECK(said->addresses.empty());
    world.now += r.kept - 1us;
    REQUIRE(world.resolver->find("x.example") != nullptr);
    CHECK(world.resolver->find("x.example")->status == r.status);
    world.now += 1us;
    CHECK(world.resolver->find("x.example") == nullptr);
  }
}

TEST_CASE("resolver: a name server that comes back is believed at once") {
  World world("options timeout:0.02 attempts:1 max-timeouts:1\n");
  world.server.script[{"a.example", '4'}] =
      world.server.script[{"a.example", '6'}] = {Rcode::silence, {}, 0};
  for (int i = 0; i < 5; ++i) {
    CHECK(world.ask("a.example").status != Status::ok);
    world.now += 1s;
  }
  world.server.script[{"b.example", '4'}] = {Rcode::ok, {"192.0.2.1"}, 60};
  CHECK(listed(world.ask("b.example")) == "192.0.2.1");
}

TEST_CASE("resolver: one family is not held up by the other's silence") {
  World world("options timeout:3 attempts:1\n");
  world.server.script[{"x.example", '4'}] = {Rcode::ok, {"192.0.2.1"}, 60};
  world.server.script[{"x.example", '6'}] = {Rcode::silence, {}, 0};
  CHECK(listed(world.ask("x.example")) == "192.0.2.1");
  world.now += 61s;  // the answer has run out, the question for IPv6 is still open
  CHECK(listed(world.ask("x.example")) == "192.0.2.1");
  CHECK(world.server.total() == 2);
}

TEST_CASE("resolver: many waiters, one question; a dropped handle hears nothing") {
  World world;
  world.server.script[{"x.example", '4'}] = {Rcode::ok, {"192.0.2.1"}, 60};
  std::vector<Resolver::Handle> handles;
  int heard = 0, dropped = 0;
  for (int i = 0; i < 10; ++i)
    handles.push_back(world.resolver->resolve(
        "X.example", [&](const Resolution& r) { heard += listed(r) == "192.0.2.1"; }));
  auto gone = world.resolver->resolve("x.example", [&](const Resolution&) { ++dropped; });
  gone = {};
  // The first to hear drops the handle of a later one, and its own, and asks again.
  auto victim = world.resolver->resolve("y.example", [](const Resolution&) {});
  Resolver::Handle own, again;
  bool asked_again = false;
  own = world.resolver->resolve("x.example", [&](const Resolution&) {
    victim = {};
    auto* resolver = world.resolver.get();
    own = {};
    again = resolver->resolve("x.example", [&](const Resolution&) { asked_again = true; });
  });
  victim = world.resolver->resolve("x.example", [&](const Resolution&) { ++dropped; });
  world.loop.until([&] { return heard == 10 && asked_again; });
  CHECK(dropped == 0);
  CHECK(world.server.asked["x.example 4"] == 1);
  CHECK(world.server.asked["x.example 6"] == 1);
}

TEST_CASE("resolver: search domains, and the trailing dot that forbids them") {
  World world("search corp.example\noptions ndots:1\n");
  world.server.script[{"wiki.corp.example", '4'}] = {Rcode::ok, {"192.0.2.1"}, 60};
  CHECK(listed(world.ask("wiki")) == "192.0.2.1");
  CHECK(world.ask("wiki.").status == Status::not_found);
  CHECK(listed(world.ask("wiki")) == "192.0.2.1");  // from the cache, not mixed up
}

TEST_CASE("resolver: what does not fit into a datagram is asked for over TCP") {
  const std::vector<const char*> many = {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4",
                                         "192.0.2.5"};
  const char* const all = "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5";
  struct Row {
    const char* name;
    const char* conf;
    std::vector<const char*> v6;
    const char* addresses;
  };
  const Row rows[] = {
      {"one family", "", {}, all},
      {"the other is short",
       "",
       {"2001:db8::1"},
       "2001:db8::1 192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5"},
      {"passed over for a search domain", "search corp.example\n", {}, all},
  };
  for (const Row& r : rows) {
    CAPTURE(r.name);
    World world(r.conf);
    world.server.script[{"x.example", '4'}] = {Rcode::ok, many, 60};
    world.server.script[{"x.example", '6'}] = {Rcode::ok, r.v6, 60};
    CHECK(listed(world.ask("x.example")) == r.addresses);
    CHECK(world.server.asked_over_tcp["x.example 4"] == 1);
    world.now += 59s;
    CHECK(world.resolver->find("x.example") != nullptr);
    world.now += 1s;
    CHECK(world.resolver->find("x.example") == nullptr);
  }
}

TEST_CASE("resolver: a name server without TCP has failed, another one is asked") {
  World world;
  NameServer other(world.loop.base);
  const std::vector<const char*> many = {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4",
                                         "192.0.2.5"};
  world.server.speaks_tcp = false;
  for (NameServer* server : {&world.server, &other}) {
    server->script[{"x.example", '4'}] = {Rcode::ok, many, 60};
    server->script[{"x.example", '6'}] = {Rcode::ok, {}, 60};
  }
  CHECK(world.ask("x.example").status == Status::failed);
  world.files.write("resolv.conf", world.server.conf(other.conf()));
  world.now += 2s;
  CHECK(world.ask("x.example").addresses.size() == many.size());
}

TEST_CASE("resolver: ends with a question open over TCP") {
  World world;
  world.server.script[{"x.example", '4'}] = {
      Rcode::ok, {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"}, 60};
  int calls = 0;
  const auto handle = world.resolver->resolve("x.example", [&](const Resolution&) { ++calls; });
  world.loop.until([&] { return world.server.asked_over_tcp["x.example 4"] == 1; });
  world.resolver.reset();
  world.loop.turn();
  CHECK(calls == 0);
}

TEST_CASE("resolver: changed files are read again, at most a second later") {
  World world;
  NameServer other(world.loop.base);
  world.server.script[{"a.example", '4'}] = {Rcode::ok, {"192.0.2.1"}, 1};
  other.script[{"a.example", '4'}] = {Rcode::ok, {"192.0.2.99"}, 1};
  CHECK(listed(world.ask("a.example")) == "192.0.2.1");
  world.files.write("resolv.conf", other.conf("# moved\n"));
  world.now += 1s;
  CHECK(listed(world.ask("a.example")) == "192.0.2.99");

  world.files.write("hosts", "192.0.2.50 a.example\n");
  CHECK(listed(*world.resolver->find("a.example")) == "192.0.2.99");
  world.now += 1s;
  CHECK(listed(*world.resolver->find("a.example")) == "192.0.2.50");
}

TEST_CASE("resolver: ends with questions open, old and new name servers alike") {
  World world;
  world.server.script[{"x.example", '4'}] = {Rcode::silence, {}, 0};
  world.server.script[{"x.example", '6'}] = {Rcode::silence, {}, 0};
  int calls = 0;
  const auto count = [&](const Resolution&) { ++calls; };
  auto first = world.resolver->resolve("x.example", count);
  world.loop.until([&] { return world.server.total() == 2; });
  world.files.write("resolv.conf", world.server.conf("# again\n"));
  world.now += 1s;
  auto second = world.resolver->resolve("y.x.example", count);
  world.resolver.reset();
  world.loop.turn();
  CHECK(calls == 0);
}

TEST_CASE("resolver: the table of fixed names is checked") {
  CHECK_FALSE(resolve_table_problem({{"api.test", "127.0.0.1"}, {"b.test", "::1"}}));
  CHECK(resolve_table_problem({{"a b", "127.0.0.1"}}).value_or("") ==
        "proxy.resolve: \"a b\" is not a host name");
  CHECK(resolve_table_problem({{"api.test", "127.0.0.1:80"}}).value_or("") ==
        "proxy.resolve: \"127.0.0.1:80\" is not an address");
}

TEST_CASE("resolver cache: bounded, the oldest leaves first") {
  ResolverCache cache;
  const Instant now{1h};
  const Resolution answer{Status::ok, {*parse_ip("192.0.2.1")}};
  for (std::size_t i = 0; i < ResolverCache::max_entries; ++i)
    cache.put(std::to_string(i), answer, now + 60s, now);
  cache.put("0", answer, now + 60s, now);  // written again: young again
  cache.put("one more", answer, now + 60s, now);
  CHECK(cache.size() == ResolverCache::max_entries);
  CHECK(cache.find("0", now) != nullptr);
  CHECK(cache.find("1", now) == nullptr);
  CHECK(cache.find("2", now) != nullptr);
  CHECK(cache.find("one more", now) != nullptr);
}

TEST_CASE("hosts file: hostile lines are bounded and skipped") {
  std::string text = "10.0.0.1\n\n#\n10.0.0.1 a A a # a\nfe80::1%lo zoned\n10.0.0.1 b/c d";
  for (int i = 0; i < 100; ++i) text += "\n10.0.1." + std::to_string(i) + "\tmany";
  const auto names = parse_hosts(text);
  CHECK(names.size() == 3);
  CHECK(names.at("a").size() == 1);
  CHECK(names.at("d").size() == 1);
  CHECK(names.at("many").size() == 16);
}
