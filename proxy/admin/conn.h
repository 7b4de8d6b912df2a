// One connection to the admin side: reads a request, has it judged and answered, then the next; or
// turns into an event stream. Bounded in head, body, time and what may wait to be written. Lives on
// the admin thread; its server deletes it.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>

#include "proxy/admin/guard.h"
#include "proxy/admin/reply.h"
#include "proxy/admin/request.h"
#include "proxy/http/reader.h"
#include "proxy/net/deadline.h"
#include "proxy/net/stream.h"

namespace sluice {

class AdminLoop;

class AdminConn final : public Stream::Handler, public Deadline::Handler {
 public:
  static constexpr std::size_t kHeadLimit = 16 * 1024;
  static constexpr std::size_t kBodyLimit = 16 * 1024;
  static constexpr std::size_t kDiscardLimit = 1024 * 1024;   // of what comes after our last words
  static constexpr std::size_t kStreamBacklog = 1024 * 1024;  // a follower that reads no more
  static constexpr Duration kRequestTime = 10s;               // for a whole request
  static constexpr Duration kIdleTime = 60s;
  static constexpr Duration kReplyTime = 30s;  // for taking the answer, or giving one
  static constexpr Duration kPing = 15s;

  AdminConn(AdminLoop& loop, OwnedSocket socket, AdminPeer peer, std::uint64_t id);

  std::uint64_t id() const { return id_; }
  bool unix_socket() const { return peer_.unix_socket; }
  bool idle() const { return state_ == State::idle; }
  bool streaming() const { return state_ == State::streaming; }

  void finish(const AdminReply& reply);  // the answer that was waited for
  void follow();                         // streaming: sends what is new
  std::list<AdminConn>::iterator self;

 private:
  enum class State : std::uint8_t {
    idle,       // between requests
    reading,    // some of a request is here
    waiting,    // for the answer
    streaming,  // events, until somebody ends it
    closing,    // our side has ended; what still comes is thrown away
    gone,
  };

  void on_ready() override;
  void on_deadline() override;
  void read();
  bool take(std::string_view in);
  bool begin_request();
  void judge();
  void send(const AdminReply& reply);
  void refuse(const AdminReply& reply);
  void end_gracefully();
  void leave();
  void set_timeout(Duration wait);

  AdminLoop& loop_;
  const AdminPeer peer_;
  const std::uint64_t id_;
  Stream stream_;
  Deadline deadline_;
  Reader reader_;
  AdminRequest request_;
  State state_ = State::idle;
  bool close_ = false;
  std::string kept_;            // read, but its turn has not come
  std::uint64_t followed_ = 0;  // the last event that was sent
  std::size_t discarded_ = 0;
};

}  // namespace sluice
