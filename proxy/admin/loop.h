// The admin side at work: a thread with an event loop, its listening sockets and connections. What
// it shares with the rest of the proxy is the source, which any thread may ask. A flood here costs
// the proxy nothing but this thread: connections are few, and the command line's are apart.
#pragma once

#include <event2/event.h>

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "proxy/admin/api.h"
#include "proxy/admin/conn.h"
#include "proxy/net/socket.h"

namespace sluice {

struct AdminListener {
  OwnedSocket socket;
  bool unix_socket = false;
};

struct AdminOptions {
  // Which TCP peers besides this machine's own may talk to it; empty: everybody.
  std::function<bool(const Address&)> welcome;
  Duration minute = 1min;  // shorter in tests
};

class AdminLoop {
 public:
  static constexpr std::size_t kMaxConnections = 64;  // over TCP, and as many over the unix socket
  static constexpr std::size_t kMaxStreams = 32;

  AdminLoop(AdminSource& source, std::string token, std::vector<AdminListener> listeners,
            AdminOptions options);
  ~AdminLoop();  // ends the thread and cuts whatever is open
  AdminLoop(const AdminLoop&) = delete;
  AdminLoop& operator=(const AdminLoop&) = delete;

  void start();

  // For its connections.
  event_base* base() { return base_.get(); }
  std::string_view token() const { return token_; }
  std::optional<AdminReply> answer(const AdminRequest& request, std::uint64_t conn);
  bool admit_stream();
  std::uint64_t last_event() { return api_.tail().last(); }
  std::vector<StoredEvent> events_after(std::uint64_t sequence, std::size_t limit) {
    return api_.tail().after(sequence, limit);
  }
  void bury(AdminConn& conn);

 private:
  template <class T, auto Free>
  struct Freed {
    void operator()(T* p) const noexcept { Free(p); }
  };
  using Event = std::unique_ptr<event, Freed<event, event_free>>;
  struct Listener {
    AdminLoop* loop;
    AdminListener listener;
    Event ready;
  };

  void accept(Listener& listener);
  void pause_accepting();
  void resume_accepting();
  void admit(OwnedSocket socket, bool unix_socket, const Address& peer);
  bool make_room(bool unix_socket);
  void post(std::function<void()> job);  // any thread
  void run_posted();
  void follow();
  void each_minute();
  void dig();

  AdminApi api_;
  const std::string token_;
  const AdminOptions options_;
  std::unique_ptr<event_base, Freed<event_base, event_base_free>> base_;
  std::vector<Listener> listeners_;
  std::list<AdminConn> conns_, buried_;
  std::uint64_t next_id_ = 1;
  OwnedSocket wake_fd_;
  Event wake_, burial_, accept_again_, follow_, minute_;
  // An order may be answered when we are gone: then nobody is there to be told.
  struct Mailbox {
    std::mutex mutex;  // guards both
    std::vector<std::function<void()>> jobs;
    int wake = -1;  // -1: the loop has ended
  };
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::thread thread_;
};

}  // namespace sluice
