// Two connections joined: bytes go both ways unchanged until both directions have ended. Used for
// CONNECT and after a 101. A direction with much to carry moves inside the kernel (splice), one
// with little is copied through the worker's buffer. Half-closes are passed on, and so are resets,
// behind the last bytes that came before them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "proxy/net/deadline.h"
#include "proxy/net/pipe.h"
#include "proxy/net/stream.h"
#include "proxy/origin_pool.h"

namespace sluice {

class Worker;

class Tunnel final : Stream::Handler, Deadline::Handler {
 public:
  // Told of every move, and of the end, after which it may destroy the tunnel.
  class Owner {
   public:
    virtual void on_tunnel_moved() = 0;
    virtual void on_tunnel_end() = 0;

   protected:
    ~Owner() = default;
  };

  Tunnel(Worker& worker, Owner& owner, Stream& client, std::unique_ptr<OriginConn> origin);
  ~Tunnel();

  void start(std::string_view from_client, std::string_view from_origin);
  std::uint64_t from_client() const { return up_.total; }
  std::uint64_t from_origin() const { return down_.total; }
  // A side was reset, and has still to be heard to its end by one that takes nothing now.
  bool is_doomed() const { return doomed_; }

 private:
  struct Direction {
    Stream& from;
    Stream& to;
    std::unique_ptr<Pipe> pipe{};
    int full_reads = 0;  // in a row: a sign of bulk
    bool ended = false;  // `from` sends no more; `to` was told if that was a clean end
    bool cut = false;    // it was none
    bool deaf = false;   // `to` takes no more: what still comes is thrown away
    std::uint64_t total = 0;
  };
  enum class Went { on, idle };

  void on_ready() override;
  void on_deadline() override { on_ready(); }
  Went move(Direction& direction, std::size_t& budget);
  Went copy(Direction& direction, std::size_t& budget);
  Went splice(Direction& direction, std::size_t& budget);
  Went discard(Direction& direction, std::size_t& budget);
  Went end(Direction& direction, Io how);
  void give_up_on(Direction& direction);
  bool finish();
  void drop_pipe(Direction& direction);

  Worker& worker_;
  Owner& owner_;
  std::unique_ptr<OriginConn> origin_;
  Deadline delivery_;  // of the last bytes before a reset
  std::size_t undelivered_ = 0;
  bool doomed_ = false;
  Direction up_, down_;
};

}  // namespace sluice
