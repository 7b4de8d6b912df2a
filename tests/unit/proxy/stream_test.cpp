#include "proxy/net/stream.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

using namespace sluice;

namespace {

struct Counter : Stream::Handler {
  void on_ready() override { ++calls; }
  int calls = 0;
};

}  // namespace

TEST_CASE("stream: after a turn was yielded the peer is still heard") {
  const std::unique_ptr<event_base, decltype(&event_base_free)> base(event_base_new(),
                                                                     event_base_free);
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  const OwnedSocket peer(ends[1]);
  Counter counter;
  Stream stream(base.get(), OwnedSocket(ends[0]), counter);
  event_base_loop(base.get(), EVLOOP_NONBLOCK);
  for (int round = 0; round < 3; ++round) {
    const int before = counter.calls;
    stream.yield();
    for (int turn = 0; turn < 3; ++turn) event_base_loop(base.get(), EVLOOP_NONBLOCK);
    CHECK(counter.calls > before);

    char byte = 'x';
    std::size_t count = 0;
    stream.read(&byte, 1, count);  // nothing there: it waits from now on
    REQUIRE_FALSE(stream.readable());
    REQUIRE(write(peer.get(), "x", 1) == 1);
    event_base_loop(base.get(), EVLOOP_NONBLOCK);
    CHECK(stream.readable());
    CHECK(stream.read(&byte, 1, count) == Io::moved);
  }
}
