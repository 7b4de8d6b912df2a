#include "proxy/origin_pool.h"

#include <algorithm>
#include <array>

#include "proxy/clock.h"

namespace sluice {
namespace {

// Whether there is anything that nobody asked for, an end included. A TLS session ticket that comes
// late is no such thing (RFC 8446 §4.6.1), nor is word of bytes that were read already.
bool speaks(Stream& stream) {
  std::array<char, 4096> buffer;
  std::size_t count = 0;
  while (stream.readable()) {
    if (stream.read(buffer.data(), buffer.size(), count) != Io::blocked) return true;
  }
  return false;
}

}  // namespace

OriginPool::OriginPool(event_base* base, PoolLimits limits)
    : limits_(limits), expiry_(base, *this) {}

// The one that rested last is the least likely to have been closed by the origin.
std::unique_ptr<OriginConn> OriginPool::take(std::string_view key, Stream::Handler& user) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || found->second.empty()) return nullptr;
  Resting& resting = *found->second.back();
  found->second.pop_back();
  auto conn = std::move(resting.conn);
  oldest_first_.erase(resting.self);
  conn->stream.set_handler(user);
  conn->reused = true;
  return conn;
}

void OriginPool::rest(std::unique_ptr<OriginConn> conn, Instant now) {
  if (now - conn->born > limits_.lifetime) return;
  if (speaks(conn->stream)) return;
  if (by_key_.size() > limits_.total)
    std::erase_if(by_key_, [](auto& k) { return k.second.empty(); });
  const auto known = by_key_.find(conn->key);
  if (known != by_key_.end() && known->second.size() >= limits_.per_origin) return;
  if (oldest_first_.size() >= limits_.total) remove(oldest_first_.front());
  auto& same = by_key_[conn->key];  // only now: making room may have taken the list away
  Resting& resting = oldest_first_.emplace_back(*this);
  conn->stream.set_handler(resting);
  conn->reader.shed();
  resting.conn = std::move(conn);
  resting.since = now;
  resting.self = std::prev(oldest_first_.end());
  same.push_back(&resting);
  if (oldest_first_.size() == 1) expiry_.set(now + limits_.idle, now);
}

void OriginPool::look_at(Resting& resting) {
  if (speaks(resting.conn->stream)) remove(resting);
}

void OriginPool::remove(Resting& resting) {
  const auto found = by_key_.find(resting.conn->key);
  std::erase(found->second, &resting);
  if (found->second.empty()) by_key_.erase(found);
  oldest_first_.erase(resting.self);
}

void OriginPool::clear() {
  by_key_.clear();
  oldest_first_.clear();
}

void OriginPool::on_deadline() {
  const Instant now = monotonic_now();
  while (!oldest_first_.empty() && now - oldest_first_.front().since >= limits_.idle) {
    remove(oldest_first_.front());
  }
  if (!oldest_first_.empty()) expiry_.set(oldest_first_.front().since + limits_.idle, now);
}

}  // namespace sluice
