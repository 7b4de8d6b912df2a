// The door of `sluice exec`: what is said at it, what is handed in, and who may come.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "proxy/cli/run_door.h"
#include "proxy/door/doorkeeper.h"
#include "proxy/door/passing.h"
#include "proxy/door/word.h"
#include "proxy/net/listener.h"
#include "proxy/net/peer_user.h"
#include "unit/proxy/tls_support.h"

using namespace sluice;

namespace {

constexpr int kPatience = 10'000;  // ms, for a busy machine

OwnedSocket connect_to(const Address& address) {
  sockaddr_storage storage;
  const socklen_t size = address.to_sockaddr(storage);
  OwnedSocket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(connect(socket.get(), reinterpret_cast<sockaddr*>(&storage), size) == 0);
  return socket;
}

// One byte, or 0 at the end of the stream.
char hear(int fd) {
  pollfd wait{fd, POLLIN, 0};
  REQUIRE(poll(&wait, 1, kPatience) == 1);
  char c = 0;
  return read(fd, &c, 1) == 1 ? c : '\0';
}

}  // namespace

TEST_CASE("door: an introduction is read back, and nothing else is one") {
  const auto read = [](std::string line) {
    REQUIRE(line.ends_with('\n'));
    line.pop_back();
    return read_introduction(line);
  };
  const auto run = read(introduction({"nightly", "4711ab", 500}));
  REQUIRE(run);
  CHECK(run->job == "nightly");
  CHECK(run->run == "4711ab");
  CHECK(run->max_requests == 500);
  CHECK_FALSE(run->numbered);
  const auto unnamed = read(introduction({"curl-99", "4711ab", 0, true}));
  REQUIRE(unnamed);
  CHECK(unnamed->numbered);
  for (const char* wrong :
       {"", "nightly", "nightly 4711", "nightly 4711 5 numbered 6", "nightly 4711 5 6",
        "nightly  5", " 4711 5", "a/b 4711 5", "nightly a-b 5", "nightly 4711 -1",
        "nightly 4711 5x", "nightly 4711 99999999999999999999",
        "nightly 123456789012345678901234567890123 5"}) {
    CAPTURE(wrong);
    CHECK_FALSE(read_introduction(wrong));
  }
}

TEST_CASE("door: a farewell is read back, and nothing else is one") {
  JobState state;
  state.requests = 42;
  state.held = 3;
  state.refused = 1;
  state.waited = 12500ms;
  state.cost = -20'000;  // a refund
  std::string line = farewell(state);
  REQUIRE(line.ends_with('\n'));
  line.pop_back();
  const auto told = read_farewell(line);
  REQUIRE(told);
  CHECK(*told == state);
  for (const char* wrong : {"", "1 2 3 4", "1 2 3 4 5 6", "1 2 3 4 x", "-1 2 3 4 5"}) {
    CAPTURE(wrong);
    CHECK_FALSE(read_farewell(wrong));
  }
}

TEST_CASE("door: a socket is handed over among bytes") {
  int ends[2], pipes[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const OwnedSocket one(ends[0]);
  OwnedSocket two(ends[1]);
  REQUIRE(pipe(pipes) == 0);
  const OwnedSocket reader(pipes[0]);
  OwnedSocket writer(pipes[1]);
  CHECK(next_passed(one.get()).io == Io::blocked);
  REQUIRE(write(two.get(), "a", 1) == 1);
  REQUIRE(pass_socket(two.get(), writer.get()));
  writer = OwnedSocket();
  Passed passed = next_passed(one.get());
  CHECK(passed.io == Io::moved);
  CHECK(passed.byte == 'a');
  CHECK_FALSE(passed.socket);
  passed = next_passed(one.get());
  REQUIRE(passed.socket);
  REQUIRE(write(passed.socket.get(), "x", 1) == 1);
  CHECK(hear(reader.get()) == 'x');
  two = OwnedSocket();
  CHECK(next_passed(one.get()).io == Io::ended);
}

TEST_CASE("door: clients come in as those of their run, and the run hears what it came to") {
  const Scratch folder;
  auto keeper = Doorkeeper::make(folder.path());
  REQUIRE(keeper);
  const std::string path = door_path(folder.path(), getpid());
  struct stat about {};
  REQUIRE(stat(path.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
  Doorkeeper::House house;
  house.welcome = [](OwnedSocket client, const ExecRunRef& run) {
    const std::string text = run->job + "." + run->run + "." + std::to_string(run->max_requests);
    CHECK(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(text.size()));
  };
  house.when_settled = [](const auto& task) { task(); };
  house.count = [](const ExecRun& run) {
    JobState state;
    state.requests = run.max_requests + 1;
    return state;
  };
  (*keeper)->start(house);

  auto door = RunDoor::open({"nightly", "r1", 7}, [&] { return path; });
  REQUIRE(door);
  CHECK((*door)->address().is_loopback());
  (*door)->start();
  for (int i = 0; i < 3; ++i) {
    const OwnedSocket client = connect_to((*door)->address());
    std::string said;
    while (const char c = hear(client.get())) said += c;
    CHECK(said == "nightly.r1.7");
  }
  const Address gone = (*door)->address();
  const auto told = (*door)->close();
  REQUIRE(told);
  CHECK(told->requests == 8);
  sockaddr_storage storage;
  const socklen_t size = gone.to_sockaddr(storage);
  const OwnedSocket late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK(connect(late.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0);

  (*keeper).reset();
  CHECK(access(path.c_str(), F_OK) != 0);
  CHECK_FALSE(RunDoor::open({"nightly", "r2", 0}, [&] { return path; }));
}

TEST_CASE("door: a proxy that was started anew takes the next client") {
  const Scratch folder;
  const std::string path = door_path(folder.path(), getpid());
  std::atomic<int> came{0};
  const auto open = [&] {
    auto keeper = Doorkeeper::make(folder.path());
    REQUIRE(keeper);
    Doorkeeper::House house;
    house.welcome = [&came](const OwnedSocket&, const ExecRunRef&) { ++came; };
    house.when_settled = [](const auto& task) { task(); };
    house.count = [](const ExecRun&) { return JobState{}; };
    (*keeper)->start(house);
    return std::move(*keeper);
  };
  auto keeper = open();
  auto door = RunDoor::open({"nightly", "r1", 0}, [&] { return path; });
  REQUIRE(door);
  (*door)->start();
  CHECK(hear(connect_to((*door)->address()).get()) == '\0');  // welcomed, and let go
  keeper.reset();
  keeper = open();
  CHECK(hear(connect_to((*door)->address()).get()) == '\0');
  CHECK(came == 2);
  CHECK((*door)->close());
}

TEST_CASE("door: who says nothing sensible is shown out, and the dead proxies' doors are removed") {
  const Scratch folder;
  const std::string dead = folder.write("door.999999999", "");
  auto keeper = Doorkeeper::make(folder.path());
  REQUIRE(keeper);
  CHECK(access(dead.c_str(), F_OK) != 0);
  (*keeper)->start({[](const OwnedSocket&, const ExecRunRef&) { FAIL("nobody comes"); },
                    [](const auto& task) { task(); }, [](const ExecRun&) { return JobState{}; }});
  for (const std::string& said : {std::string("what\n"), std::string(2 * kWordLimit, 'x')}) {
    auto socket = connect_unix(door_path(folder.path(), getpid()));
    REQUIRE(socket);
    [[maybe_unused]] const auto sent = send(socket->get(), said.data(), said.size(), MSG_NOSIGNAL);
    CHECK(hear(socket->get()) == '\0');
  }
}

TEST_CASE("peer user: ours is found, a closed one is nobody's") {
  auto listening = listen_on(*parse_address("127.0.0.1:0"), 1);
  REQUIRE(listening);
  OwnedSocket client = connect_to(listening->address);
  sockaddr_storage storage;
  socklen_t size = sizeof storage;
  getsockname(client.get(), reinterpret_cast<sockaddr*>(&storage), &size);
  const Address peer = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&storage), size);
  for (const auto who : {peer_user, listed_peer_user}) {
    CHECK(who(peer, listening->address) == geteuid());
    CHECK_FALSE(who(*parse_address("127.0.0.1:1"), listening->address));
    // One listens there, but has no connection to here.
    CHECK_FALSE(who(listening->address, peer.with_port(1)));
  }
  client = OwnedSocket();
  // It waits for our end to close, and is listed as root's.
  for (const auto who : {peer_user, listed_peer_user}) CHECK_FALSE(who(peer, listening->address));
}

TEST_CASE("peer user: one whose socket is for IPv6 as well") {
  auto listening = listen_on(*parse_address("127.0.0.1:0"), 1);
  REQUIRE(listening);
  const OwnedSocket client(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 mapped{};
  mapped.sin6_family = AF_INET6;
  mapped.sin6_port = htons(listening->address.port);
  mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(&mapped.sin6_addr.s6_addr[12], listening->address.bytes.data(), 4);
  if (!client || connect(client.get(), reinterpret_cast<sockaddr*>(&mapped), sizeof mapped) != 0) {
    MESSAGE("this machine has no IPv6");
    return;
  }
  sockaddr_storage storage;
  socklen_t size = sizeof storage;
  const OwnedSocket accepted(
      accept(listening->sockets.front().get(), reinterpret_cast<sockaddr*>(&storage), &size));
  REQUIRE(accepted);
  const Address peer = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&storage), size);
  for (const auto who : {peer_user, listed_peer_user}) {
    CHECK(who(peer, listening->address) == geteuid());
  }
}

TEST_CASE("peer user: as proc(5) lists them") {
  const auto peer = *parse_address("127.0.0.1:40000"), own = *parse_address("127.0.0.1:7878");
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, own.bytes.data(), sizeof bytes);
  char place[16];
  std::snprintf(place, sizeof place, "%08X", bytes);
  const auto line = [&](const char* from, const char* to, const char* user, const char* inode) {
    return std::string("   3: ") + place + ":" + from + " " + place + ":" + to +
           " 01 00000000:00000000 00:00000000 00000000  " + user + "        0 " + inode +
           " 1 00000000d03cf547 100 0 0 10 0\n";
  };
  const std::string other = line("1EC6", "9C40", "0", "17");  // our own end
  CHECK(find_peer_user(other + line("9C40", "1EC6", "1000", "4711"), peer, own) == 1000u);
  CHECK_FALSE(find_peer_user(other, peer, own));
  CHECK_FALSE(find_peer_user(line("9C40", "1EC6", "0", "0"), peer, own));
  CHECK_FALSE(find_peer_user("", peer, own));
}
