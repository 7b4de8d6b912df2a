#include "proxy/net/listener.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

using namespace sluice;

TEST_CASE("listener: clients are watched for having vanished") {
  const auto listening = listen_on(*parse_address("127.0.0.1:0"), 1);
  REQUIRE(listening);
  const OwnedSocket client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage storage;
  const socklen_t size = listening->address.to_sockaddr(storage);
  REQUIRE(connect(client.get(), reinterpret_cast<sockaddr*>(&storage), size) == 0);
  const int listener = listening->sockets.front().get();
  pollfd waiting{listener, POLLIN, 0};
  REQUIRE(poll(&waiting, 1, 10'000) == 1);
  const OwnedSocket accepted(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(accepted);
  const auto value = [&](int level, int option) {
    int got = 0;
    socklen_t length = sizeof got;
    getsockopt(accepted.get(), level, option, &got, &length);
    return got;
  };
  CHECK(value(SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(value(IPPROTO_TCP, TCP_KEEPIDLE) == 60);
  CHECK(value(IPPROTO_TCP, TCP_NODELAY) != 0);
}
