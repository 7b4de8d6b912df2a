#include "proxy/tunnel.h"

#include "proxy/worker.h"

namespace sluice {
namespace {

constexpr std::size_t kTurn = 4 << 20;         // bytes moved before others get a turn
constexpr int kBulkAfter = 2;                  // full reads in a row
constexpr std::size_t kSmallMove = 16 * 1024;  // a splice that moves less is not worth its calls

}  // namespace

Tunnel::Tunnel(Worker& worker, Owner& owner, Stream& client, std::unique_ptr<OriginConn> origin)
    : worker_(worker),
      owner_(owner),
      origin_(std::move(origin)),
      up_{client, origin_->stream},
      down_{origin_->stream, client} {
  client.set_handler(*this);
  origin_->stream.set_handler(*this);
}

Tunnel::~Tunnel() {
  drop_pipe(up_);
  drop_pipe(down_);
}

void Tunnel::start(std::string_view from_client, std::string_view from_origin) {
  up_.total = from_client.size();
  down_.total = from_origin.size();
  if ((!from_client.empty() && !up_.to.write(from_client)) ||
      (!from_origin.empty() && !down_.to.write(from_origin))) {
    return owner_.on_tunnel_end();
  }
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
    if (went == Went::broken) return owner_.on_tunnel_end();
    moved |= direction->total != before;
    tired |= budget == 0;
  }
  if (up_.ended && down_.ended && up_.to.backlog() == 0 && down_.to.backlog() == 0) {
    return owner_.on_tunnel_end();
  }
  if (tired) up_.from.yield();
  if (moved) owner_.on_tunnel_moved();
}

Tunnel::Went Tunnel::move(Direction& direction, std::size_t& budget) {
  if (!direction.to.flush()) return Went::broken;
  if (direction.to.backlog() > 0 || direction.ended) return Went::idle;
  if (direction.pipe) return splice(direction, budget);
  return direction.from.readable() ? copy(direction, budget) : Went::idle;
}

Tunnel::Went Tunnel::copy(Direction& direction, std::size_t& budget) {
  const auto buffer = worker_.scratch();
  std::size_t count = 0;
  switch (direction.from.read(buffer.data(), buffer.size(), count)) {
    case Io::moved: break;
    case Io::blocked: return Went::idle;
    case Io::failed: return Went::broken;
    case Io::ended:
      direction.ended = true;
      direction.to.shutdown_write();
      return Went::idle;
  }
  direction.total += count;
  budget -= std::min(budget, count);
  if (!direction.to.write({buffer.data(), count})) return Went::broken;
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
      case Io::failed: return Went::broken;
      case Io::ended:
        direction.ended = true;
        drop_pipe(direction);
        direction.to.shutdown_write();
        return Went::idle;
    }
    direction.total += in;
    budget -= std::min(budget, in);
  }
  while (!pipe.empty()) {
    std::size_t out = 0;
    if (!direction.to.writable()) return Went::idle;
    const Io io = direction.to.write_from(pipe, out);
    if (io == Io::failed) return Went::broken;
    if (io == Io::blocked) return Went::idle;
  }
  if (in != 0 && in < kSmallMove) drop_pipe(direction);
  return Went::on;
}

void Tunnel::drop_pipe(Direction& direction) {
  direction.full_reads = 0;
  worker_.pipes().give_back(std::move(direction.pipe));
}

}  // namespace sluice
