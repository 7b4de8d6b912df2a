#include "proxy/origin_pool.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "proxy/clock.h"

using namespace sluice;

namespace {

struct Nobody final : Stream::Handler {
  void on_ready() override {}
};

// A loop, a pool, and connections whose other end the test holds.
struct World {
  event_base* base = event_base_new();
  Nobody nobody;
  std::unique_ptr<OriginPool> pool;
  Instant now = monotonic_now();

  explicit World(PoolLimits limits = {}) : pool(std::make_unique<OriginPool>(base, limits)) {}
  ~World() {
    pool.reset();
    event_base_free(base);
  }

  struct Pair {
    std::unique_ptr<OriginConn> ours;
    OwnedSocket theirs;
  };
  Pair connect(const std::string& key, Instant born) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    return {std::make_unique<OriginConn>(base, OwnedSocket(ends[0]), nobody, key, 65536, born),
            OwnedSocket(ends[1])};
  }
  // Rests a new one, and gives the other end.
  OwnedSocket rest(const std::string& key) {
    Pair pair = connect(key, now);
    settle();
    pool->rest(std::move(pair.ours), now);
    return std::move(pair.theirs);
  }
  std::unique_ptr<OriginConn> take(const std::string& key) { return pool->take(key, nobody); }

  void settle() { event_base_loop(base, EVLOOP_NONBLOCK); }
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

}  // namespace

TEST_CASE("origin pool: what rests is taken again, by the same key only") {
  World world;
  CHECK(world.take("a:80") == nullptr);
  const OwnedSocket peer = world.rest("a:80");
  CHECK(world.pool->size() == 1);
  CHECK(world.take("a:81") == nullptr);
  CHECK(world.take("b:80") == nullptr);
  const auto conn = world.take("a:80");
  REQUIRE(conn != nullptr);
  CHECK(conn->reused);
  CHECK(world.pool->size() == 0);
  CHECK(world.take("a:80") == nullptr);
}

TEST_CASE("origin pool: the one that rested last goes first") {
  World world;
  const OwnedSocket first = world.rest("a:80");
  World::Pair second = world.connect("a:80", world.now);
  world.settle();
  const int fd = second.ours->stream.fd();
  world.pool->rest(std::move(second.ours), world.now);
  const auto conn = world.take("a:80");
  REQUIRE(conn != nullptr);
  CHECK(conn->stream.fd() == fd);
  CHECK(world.pool->size() == 1);
}

TEST_CASE("origin pool: anything that happens while it rests ends it") {
  World world;
  OwnedSocket talks = world.rest("a:80"), closes = world.rest("a:80"), rests = world.rest("a:80");
  REQUIRE(write(talks.get(), "HTTP/1.1 200 OK\r\n\r\n", 19) == 19);
  closes = OwnedSocket();
  world.until([&] { return world.pool->size() == 1; });
  CHECK(world.take("a:80") != nullptr);
  CHECK(world.take("a:80") == nullptr);
}

TEST_CASE("origin pool: bytes that came before it could rest are nobody's answer") {
  World world;
  World::Pair pair = world.connect("a:80", world.now);
  REQUIRE(write(pair.theirs.get(), "x", 1) == 1);
  world.until([&] { return pair.ours->stream.readable(); });
  world.pool->rest(std::move(pair.ours), world.now);
  CHECK(world.pool->size() == 0);
}

TEST_CASE("origin pool: as many as it may hold, the oldest making room") {
  PoolLimits limits;
  limits.per_origin = 2;
  limits.total = 3;
  World world(limits);
  const OwnedSocket a1 = world.rest("a:80"), a2 = world.rest("a:80"), a3 = world.rest("a:80");
  CHECK(world.pool->size() == 2);
  const OwnedSocket b = world.rest("b:80"), c = world.rest("c:80");
  CHECK(world.pool->size() == 3);
  CHECK(world.take("a:80") != nullptr);
  CHECK(world.take("a:80") == nullptr);  // the older of the two made room for c
  CHECK(world.take("b:80") != nullptr);
  CHECK(world.take("c:80") != nullptr);
}

TEST_CASE("origin pool: the oldest may be the only other one of the same origin") {
  PoolLimits limits;
  limits.total = 1;
  World world(limits);
  const OwnedSocket first = world.rest("a:80"), second = world.rest("a:80");
  CHECK(world.pool->size() == 1);
  CHECK(world.take("a:80") != nullptr);
  CHECK(world.take("a:80") == nullptr);
}

TEST_CASE("origin pool: an old connection is not kept: names move") {
  World world;
  World::Pair pair = world.connect("a:80", world.now - PoolLimits{}.lifetime - 1s);
  world.settle();
  world.pool->rest(std::move(pair.ours), world.now);
  CHECK(world.pool->size() == 0);
}

TEST_CASE("origin pool: rest ends by itself") {
  PoolLimits limits;
  limits.idle = 1ms;
  World world(limits);
  const OwnedSocket a = world.rest("a:80"), b = world.rest("b:80");
  world.until([&] { return world.pool->size() == 0; });
  CHECK(world.take("a:80") == nullptr);
}

TEST_CASE("origin pool: cleared at once") {
  World world;
  const OwnedSocket a = world.rest("a:80"), b = world.rest("b:80");
  world.pool->clear();
  CHECK(world.pool->size() == 0);
  CHECK(world.take("a:80") == nullptr);
}
