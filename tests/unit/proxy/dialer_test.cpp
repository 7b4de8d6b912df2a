#include "proxy/net/dialer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "proxy/clock.h"

using namespace sluice;

namespace {

struct Loop {
  event_base* base = event_base_new();
  ~Loop() { event_base_free(base); }

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
};

// Listens, and never accepts: the kernel completes the handshakes.
struct Listener {
  OwnedSocket socket;
  Address address;

  explicit Listener(const std::string& at, int backlog = 16) {
    const Address wanted = *parse_address(at);
    sockaddr_storage storage;
    socklen_t length = wanted.to_sockaddr(storage);
    auto* generic = reinterpret_cast<sockaddr*>(&storage);
    socket = OwnedSocket(::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0));
    REQUIRE(bind(socket.get(), generic, length) == 0);
    REQUIRE(listen(socket.get(), backlog) == 0);
    REQUIRE(getsockname(socket.get(), generic, &length) == 0);
    address = Address::from_sockaddr(generic, length);
  }
};

// An address whose queue is full: a further SYN gets no answer at all.
struct BlackHole : Listener {
  std::vector<OwnedSocket> fill;

  explicit BlackHole(const std::string& at) : Listener(at, 0) {
    sockaddr_storage storage;
    const socklen_t length = address.to_sockaddr(storage);
    for (int i = 0; i < 4; ++i) {
      fill.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      REQUIRE(connect(fill.back().get(), reinterpret_cast<sockaddr*>(&storage), length) == -1);
    }
  }
};

std::uint16_t closed_port() { return Listener("127.0.0.1:0").address.port; }

std::vector<Address> ips(std::initializer_list<const char*> texts) {
  std::vector<Address> list;
  for (const char* text : texts) list.push_back(*parse_ip(text));
  return list;
}

struct World {
  Loop loop;
  AddressFilter filter;
  DialOptions options{.stagger = 20ms};

  Connected dial(const std::vector<Address>& addresses, std::uint16_t port, Duration limit = 5s) {
    Dialer dialer(loop.base, filter, options);
    std::optional<Connected> said;
    const DialHandle handle = dialer.dial(addresses, port, monotonic_now() + limit,
                                          [&](Connected c) { said = std::move(c); });
    CHECK_FALSE(said);  // never inside the call
    loop.until([&] { return said.has_value(); });
    return std::move(*said);
  }
};

}  // namespace

TEST_CASE("dialer: connects, and the socket is as promised") {
  World world;
  for (const char* at : {"127.0.0.1:0", "[::1]:0"}) {
    CAPTURE(at);
    Listener listener(at);
    const Connected c = world.dial({listener.address}, listener.address.port);
    REQUIRE(c);
    CHECK(c.peer == listener.address);
    CHECK(c.detail.empty());
    CHECK((fcntl(c.socket.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK((fcntl(c.socket.get(), F_GETFD) & FD_CLOEXEC) != 0);
    int on = 0;
    socklen_t length = sizeof on;
    CHECK(getsockopt(c.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, &length) == 0);
    CHECK(on != 0);
    CHECK(::send(c.socket.get(), "x", 1, MSG_NOSIGNAL) == 1);
  }
}

TEST_CASE("dialer: nobody listens") {
  World world;
  const std::uint16_t port = closed_port();
  const Connected c = world.dial(ips({"127.0.0.1"}), port);
  CHECK(c.error == ConnectError::refused);
  CHECK(c.detail == "127.0.0.1:" + std::to_string(port) + ": Connection refused");
  CHECK_FALSE(c.socket);
}

TEST_CASE("dialer: no address at all") {
  World world;
  CHECK(world.dial({}, 80).error == ConnectError::name_not_found);
}

TEST_CASE("dialer: a refusal does not wait for the delay") {
  World world;
  world.options.stagger = 1h;
  Listener listener("127.0.0.1:0");
  const Connected c = world.dial(ips({"::1", "127.0.0.1"}), listener.address.port);
  REQUIRE(c);
  CHECK(c.peer == listener.address);
}

TEST_CASE("dialer: silence of one address starts the next after the delay") {
  World world;
  BlackHole hole("127.0.0.1:0");
  Listener listener("127.0.0.2:" + std::to_string(hole.address.port));
  const Instant start = monotonic_now();
  const Connected c = world.dial(ips({"127.0.0.1", "127.0.0.2"}), hole.address.port);
  REQUIRE(c);
  CHECK(c.peer == listener.address);
  CHECK(monotonic_now() - start >= 20ms);
}

TEST_CASE("dialer: the families take turns") {
  World world;
  std::string order;
  world.filter = [&](const Address& address) {
    order += address.ip_text() + " ";
    return Verdict{Verdict::Kind::denied, "not this one"};
  };
  world.dial(ips({"::1", "::2", "::3", "10.0.0.1", "10.0.0.2"}), 80);
  CHECK(order == "::1 10.0.0.1 ::2 10.0.0.2 ::3 ");
  order.clear();
  world.dial(ips({"10.0.0.1", "::1", "::2", "10.0.0.2"}), 80);
  CHECK(order == "10.0.0.1 ::1 10.0.0.2 ::2 ");
  order.clear();
  world.options.max_addresses = 3;
  world.dial(ips({"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}), 80);
  CHECK(order == "10.0.0.1 10.0.0.2 10.0.0.3 ");
}

TEST_CASE("dialer: the deadline ends it") {
  World world;
  BlackHole hole("127.0.0.1:0");
  const Connected c = world.dial({hole.address}, hole.address.port, 30ms);
  CHECK(c.error == ConnectError::timed_out);
  CHECK(c.detail == hole.address.text() + ": no answer within the time to connect");
  CHECK(world.dial({hole.address}, hole.address.port, -1s).error == ConnectError::timed_out);
}

TEST_CASE("dialer: denied addresses are skipped, and named when there is nothing else") {
  World world;
  Listener listener("127.0.0.1:0");
  world.filter = [](const Address& address) {
    if (address.same_ip(Address::v4(127, 0, 0, 1))) return Verdict{};
    if (address.is_loopback()) return Verdict{Verdict::Kind::self, address.text() + " is me"};
    return Verdict{Verdict::Kind::denied, address.text() + " is forbidden"};
  };
  const std::uint16_t port = listener.address.port;
  CHECK(world.dial(ips({"10.0.0.1", "127.0.0.1"}), port).peer == listener.address);

  const Connected denied = world.dial(ips({"10.0.0.1", "10.0.0.2"}), port);
  CHECK(denied.error == ConnectError::denied);
  CHECK(denied.detail == "10.0.0.1:" + std::to_string(port) + " is forbidden");

  const Connected self = world.dial(ips({"::1"}), port);
  CHECK(self.error == ConnectError::self);
  CHECK(self.detail == "[::1]:" + std::to_string(port) + " is me");

  // What was tried says more than what was not.
  CHECK(world.dial(ips({"10.0.0.1", "127.0.0.1"}), closed_port()).error == ConnectError::refused);
}

TEST_CASE("dialer: without descriptors the fault is ours") {
  World world;
  world.loop.until([] { return true; });
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 0;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const Connected c = world.dial(ips({"127.0.0.1"}), 80);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(c.error == ConnectError::local);
  CHECK(c.detail == "127.0.0.1:80: Too many open files");
}

TEST_CASE("dialer: a dropped handle cancels; one may be dropped inside its callback") {
  Loop loop;
  Dialer dialer(loop.base, nullptr);
  Listener listener("127.0.0.1:0");
  const Instant deadline = monotonic_now() + 5s;
  int dropped = 0;
  bool done = false;
  DialHandle gone = dialer.dial({listener.address}, listener.address.port, deadline,
                                [&](Connected) { ++dropped; });
  gone = {};
  DialHandle failing = dialer.dial({}, 80, deadline, [&](Connected) { ++dropped; });
  failing = {};
  DialHandle own;
  own = dialer.dial({listener.address}, listener.address.port, deadline, [&](Connected c) {
    own = {};
    done = bool(c);
  });
  loop.until([&] { return done; });
  CHECK(dropped == 0);
}

TEST_CASE("connector: from a name to a connection, or to the reason why not") {
  Loop loop;
  ResolverOptions options;
  options.hosts_file = options.resolv_conf = "/nonexistent";
  Listener listener("127.0.0.1:0");
  Resolver resolver(loop.base, {{"api.test", "127.0.0.1"}, {"meta.test", "169.254.169.254"}},
                    options);
  const auto rules = AccessRules::make({}, {*parse_address("127.0.0.1:7878")});
  REQUIRE(rules);
  Dialer dialer(loop.base, [&](const Address& address) { return rules->destination(address); });
  Connector connector(resolver, dialer);
  struct Row {
    const char* host;
    std::uint16_t port;
    ConnectError error;
    std::string detail;
  };
  const Row rows[] = {
      {"api.test", listener.address.port, ConnectError::none, ""},
      {"localhost", listener.address.port, ConnectError::none, ""},
      {"127.0.0.1", listener.address.port, ConnectError::none, ""},
      {"127.1", 80, ConnectError::bad_name, "\"127.1\" is not a host name"},
      {"meta.test", 80, ConnectError::denied,
       "169.254.169.254 is a cloud metadata address, which is never proxied"},
      {"api.test", 7878, ConnectError::self, "127.0.0.1:7878 is this proxy itself"},
  };
  for (const Row& r : rows) {
    CAPTURE(r.host);
    std::optional<Connected> said;
    const DialHandle handle = connector.connect(r.host, r.port, monotonic_now() + 5s,
                                                [&](Connected c) { said = std::move(c); });
    CHECK_FALSE(said);
    loop.until([&] { return said.has_value(); });
    CHECK(said->error == r.error);
    CHECK(said->detail == r.detail);
  }
}

TEST_CASE("connector: the deadline covers the name; a cancelled one asks nobody back") {
  Loop loop;
  char conf[] = "/tmp/sluice-dialer-XXXXXX";
  const OwnedSocket file(mkstemp(conf));
  // A name server that never answers: a datagram socket that nobody reads.
  const OwnedSocket server(::socket(AF_INET, SOCK_DGRAM, 0));
  sockaddr_storage storage;
  socklen_t length = parse_address("127.0.0.1:0")->to_sockaddr(storage);
  auto* generic = reinterpret_cast<sockaddr*>(&storage);
  REQUIRE(bind(server.get(), generic, length) == 0);
  REQUIRE(getsockname(server.get(), generic, &length) == 0);
  const std::string line = "nameserver " + Address::from_sockaddr(generic, length).text() + "\n";
  REQUIRE(write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  ResolverOptions options;
  options.hosts_file = "/nonexistent";
  options.resolv_conf = conf;
  {
    Resolver resolver(loop.base, {}, options);
    Dialer dialer(loop.base, nullptr);
    Connector connector(resolver, dialer);
    std::optional<Connected> said;
    int dropped = 0;
    DialHandle gone = connector.connect("slow.example", 80, monotonic_now() + 20ms,
                                        [&](Connected) { ++dropped; });
    gone = {};
    const DialHandle handle = connector.connect("slow.example", 80, monotonic_now() + 30ms,
                                                [&](Connected c) { said = std::move(c); });
    loop.until([&] { return said.has_value(); });
    CHECK(said->error == ConnectError::name_timed_out);
    CHECK(said->detail == "DNS did not say in time where slow.example is");
    CHECK(dropped == 0);
  }
  event_base_loop(loop.base, EVLOOP_NONBLOCK);  // evdns tells its callbacks that it is gone
  unlink(conf);
}
