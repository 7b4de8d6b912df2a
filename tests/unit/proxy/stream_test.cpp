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

TEST_CASE("stream: an end that comes too early is seen without reading") {
  struct Row {
    const char* name;
    bool ends;
    std::uint64_t wanted;
    bool short_of_it;
  };
  const Row rows[] = {
      {"it goes on", false, 4, false},
      {"all came before the end", true, 3, false},
      {"some did not", true, 4, true},
  };
  for (const Row& r : rows) {
    CAPTURE(r.name);
    const std::unique_ptr<event_base, decltype(&event_base_free)> base(event_base_new(),
                                                                       event_base_free);
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    const OwnedSocket peer(ends[1]);
    Counter counter;
    Stream stream(base.get(), OwnedSocket(ends[0]), counter);
    REQUIRE(write(peer.get(), "abc", 3) == 3);
    if (r.ends) REQUIRE(shutdown(peer.get(), SHUT_WR) == 0);
    event_base_loop(base.get(), EVLOOP_NONBLOCK);
    CHECK(stream.falls_short_of(r.wanted) == r.short_of_it);
  }
}

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
