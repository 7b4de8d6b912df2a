// Connections to origins: one class for a connection, one for those that rest between requests.
// Belongs to one worker; nothing is shared. A resting connection on which anything is said is
// closed: bytes that nobody asked for must never answer somebody else.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/time.h"
#include "proxy/http/reader.h"
#include "proxy/net/deadline.h"
#include "proxy/net/stream.h"

namespace sluice {

class OriginConn {
 public:
  OriginConn(event_base* base, OwnedSocket socket, Stream::Handler& handler, std::string key,
             std::size_t head_limit, Instant now)
      : stream(base, std::move(socket), handler),
        reader(Reader::Kind::response, head_limit),
        key(std::move(key)),
        born(now) {}

  Stream stream;
  Reader reader;
  const std::string key;  // "host:port"
  const Instant born;
  bool reused = false;
  bool personal = false;  // authenticated for one client: no other may get it
};

struct PoolLimits {
  Duration idle = 60s;        // resting
  Duration lifetime = 10min;  // since it was opened: names move to other addresses
  std::size_t per_origin = 256;
  std::size_t total = 2048;
};

class OriginPool final : Deadline::Handler {
 public:
  OriginPool(event_base* base, PoolLimits limits);

  std::unique_ptr<OriginConn> take(std::string_view key, Stream::Handler& user);
  void rest(std::unique_ptr<OriginConn> conn, Instant now);
  void clear();
  std::size_t size() const { return oldest_first_.size(); }

 private:
  struct Resting final : Stream::Handler {
    explicit Resting(OriginPool& p) : pool(p) {}
    void on_ready() override { pool.look_at(*this); }

    OriginPool& pool;
    std::unique_ptr<OriginConn> conn;
    Instant since;
    std::list<Resting>::iterator self;
  };
  struct KeyHash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  void look_at(Resting& resting);
  void remove(Resting& resting);
  void on_deadline() override;

  const PoolLimits limits_;
  Deadline expiry_;
  std::list<Resting> oldest_first_;
  std::unordered_map<std::string, std::vector<Resting*>, KeyHash, std::equal_to<>> by_key_;
};

}  // namespace sluice
