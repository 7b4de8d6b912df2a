#include "proxy/tunnel.h"

#include <utility>

#include "proxy/clock.h"
#include "proxy/worker.h"

namespace sluice {
namespace {

constexpr std::size_t kTurn = 4 << 20;         // bytes moved before others get a turn
constexpr int kBulkAfter = 2;                  // full reads in a row
constexpr std::size_t kSmallMove = 16 * 1024;  // a splice that moves less is not worth its calls
constexpr Duration kDeliveryCheck = 50ms;

}  // namespace

Tunnel::Tunnel(Worker& worker, Owner& owner, Stream& client, std::unique_ptr<OriginConn> origin)
    : worker_(worker),
      owner_(owner),
      origin_(std::move(origin)),
      delivery_(worker.base(), *this),
      up_{client, origin_->stream},
      down_{origin_->stream, client} {
  client.set_handler(*this);
  origin_->stream.set_handler(*this);
}

Tunnel::~Tunnel() {
  if (doomed_) {
    up_.from.reset_on_close();
    up_.to.reset_on_close();
  }
  drop_pipe(up_);
  drop_pipe(down_);
}

void Tunnel::start(std::string_view from_client, std::string_view from_origin) {
  up_.total = from_client.size();
  down_.total = from_origin.size();
  up_.deaf = !from_client.empty() && !up_.to.write(from_client);
  down_.deaf = !from_origin.empty() && !down_.to.write(from_origin);
  on_ready();
}

void Tunnel::on_ready() {
  bool moved = false;
  bool tired = false;
  for (Direction* direction : {&up_, &down_}) {
    const auto before = direction->total;
    std::size_t budget = kTurn;
    Went went = Went::on;
    while (went == Went::on && budget > 0) went = move(*direction, budget);
    moved |= direction->total != before;
    tired |= budget == 0;
    // Nobody reads from a side whose bytes are not taken, so its reset would go unseen.
    if (!direction->ended && direction->from.was_reset()) moved = doomed_ = true;
  }
  if (finish()) return owner_.on_tunnel_end();
  if (tired) up_.from.yield();
  if (moved) owner_.on_tunnel_moved();
}

Tunnel::Went Tunnel::move(Direction& direction, std::size_t& budget) {
  if (!direction.deaf && !direction.to.flush()) give_up_on(direction);
  if (direction.ended) return Went::idle;
  if (direction.deaf) return discard(direction, budget);
  if (direction.to.backlog() > 0) return Went::idle;
  if (direction.pipe) return splice(direction, budget);
  return direction.from.readable() ? copy(direction, budget) : Went::idle;
}

Tunnel::Went Tunnel::copy(Direction& direction, std::size_t& budget) {
  const auto buffer = worker_.scratch();
  std::size_t count = 0;
  switch (direction.from.read(buffer.data(), buffer.size(), count)) {
    case Io::moved: break;
    case Io::blocked: return Went::idle;
    case Io::failed: return end(direction, Io::failed);
    case Io::ended: return end(direction, Io::ended);
  }
  direction.total += count;
  budget -= std::min(budget, count);
  if (!direction.to.write({buffer.data(), count})) {
    give_up_on(direction);
    return Went::on;
  }
  direction.full_reads = count == buffer.size() ? direction.full_reads + 1 : 0;
  if (direction.full_reads >= kBulkAfter && direction.from.plain() && direction.to.plain())
    direction.pipe = worker_.pipes().take();
  return Went::on;
}

Tunnel::Went Tunnel::splice(Direction& direction, std::size_t& budget) {
  Pipe& pipe = *direction.pipe;
  std::size_t in = 0;
  if (pipe.empty()) {
    if (!direction.from.readable()) {
      drop_pipe(direction);
      return Went::idle;
    }
    switch (direction.from.read_into(pipe, pipe.capacity(), in)) {
      case Io::moved: break;
      case Io::blocked: return Went::idle;
      case Io::failed: return end(direction, Io::failed);
      case Io::ended: return end(direction, Io::ended);
    }
    direction.total += in;
    budget -= std::min(budget, in);
  }
  while (!pipe.empty()) {
    std::size_t out = 0;
    if (!direction.to.writable()) return Went::idle;
    const Io io = direction.to.write_from(pipe, out);
    if (io == Io::failed) {
      give_up_on(direction);
      return Went::on;
    }
    if (io == Io::blocked) return Went::idle;
  }
  if (in != 0 && in < kSmallMove) drop_pipe(direction);
  return Went::on;
}

// Its sender must not stall: it may have more to hear than it has to say.
Tunnel::Went Tunnel::discard(Direction& direction, std::size_t& budget) {
  if (!direction.from.readable()) return Went::idle;
  const auto buffer = worker_.scratch();
  std::size_t count = 0;
  const Io io = direction.from.read(buffer.data(), buffer.size(), count);
  if (io == Io::blocked) return Went::idle;
  if (io != Io::moved) return end(direction, io);
  budget -= std::min(budget, count);
  return Went::on;
}

Tunnel::Went Tunnel::end(Direction& direction, Io how) {
  direction.ended = true;
  direction.cut = how == Io::failed;
  drop_pipe(direction);
  // The error of a reset is told once: after a broken write, reading finds a clean-looking end.
  const bool reset = direction.cut || (&direction == &up_ ? down_ : up_).deaf;
  if (!reset && !direction.deaf) direction.to.shutdown_write();
  return Went::idle;
}

void Tunnel::give_up_on(Direction& direction) {
  direction.deaf = true;
  drop_pipe(direction);
}

// True: nothing more will come of it. A side that was reset is not worth waiting for, but what it
// said before is delivered first, since our reset would overtake it.
bool Tunnel::finish() {
  bool cut = false;
  for (Direction* direction : {&up_, &down_}) {
    const Direction& back = direction == &up_ ? down_ : up_;
    if (!direction->ended || !(direction->cut || back.deaf)) continue;
    cut = true;
    if (direction->deaf) continue;
    if (const auto left = back.cut ? 0 : direction->to.unsent(); left > 0) {
      if (left != std::exchange(undelivered_, left)) owner_.on_tunnel_moved();
      const Instant now = monotonic_now();
      delivery_.set(now + kDeliveryCheck, now);
      return false;
    }
    direction->to.reset_on_close();
  }
  const auto delivered = [](const Direction& d) {
    return d.ended && (d.deaf || d.to.backlog() == 0);
  };
  return cut || (delivered(up_) && delivered(down_));
}

void Tunnel::drop_pipe(Direction& direction) {
  direction.full_reads = 0;
  worker_.pipes().give_back(std::move(direction.pipe));
}

}  // namespace sluice
