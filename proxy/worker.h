// One thread with its own event loop, listening sockets, origin pool and resolver. Connections live
// and die on it. What workers share is given to them in Shared and is either immutable or safe to
// call from any thread; nothing else crosses.
#pragma once

#include <event2/event.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "proxy/access.h"
#include "proxy/access_log.h"
#include "proxy/client_conn.h"
#include "proxy/config.h"
#include "proxy/governor/governor.h"
#include "proxy/http/gather.h"
#include "proxy/mailbox.h"
#include "proxy/net/dialer.h"
#include "proxy/net/pipe.h"
#include "proxy/net/resolver.h"
#include "proxy/origin_pool.h"
#include "proxy/owned.h"
#include "proxy/robots/robots_desk.h"
#include "proxy/robots/robots_fetch.h"
#include "proxy/stop_switch.h"
#include "proxy/tls/interception.h"
#include "proxy/tls/layer.h"
#include "proxy/users.h"

namespace sluice {

struct Shared {
  const Config& config;
  const AccessRules& access;
  Governor& governor;
  const StopSwitch& emergency;
  Users* users;           // null: nobody is asked
  AccessLog* access_log;  // null: off
  Interception& tls;
  RobotsDesk& robots;
  std::string pseudonym;  // our name in Via, unlike any other instance's
  std::string listen;     // the first address, for the help page
  std::atomic<std::size_t> clients{0};
  std::atomic<std::uint64_t> next_id{1};
};

class Worker final : public Mailbox {
 public:
  Worker(Shared& shared, std::vector<OwnedSocket> listeners);
  ~Worker();

  void start();                     // its thread
  void stop_accepting_and_drain();  // any thread
  void cut_everything();            // any thread: an emergency stop came into force
  // Any thread: a client that came through the door of a run of `sluice exec`.
  void take_in(OwnedSocket socket, ExecRunRef run);
  void stop();  // any thread: ends the loop with whatever is under way
  void join();
  bool idle() const { return idle_.load(); }  // any thread: drained

  // For the connections on this thread.
  event_base* base() { return base_.get(); }
  const Timeouts& timeouts() const { return shared_.config.proxy.timeouts; }
  std::size_t head_limit() const { return shared_.config.proxy.head_limit; }
  bool connect_port_allowed(std::uint16_t port) const;
  const AccessRules& access() const { return shared_.access; }
  Governor& governor() { return shared_.governor; }
  Tally& tally() { return shared_.governor.tally(); }
  const StopSwitch& emergency() const { return shared_.emergency; }
  Users* users() { return shared_.users; }
  AccessLog* access_log() { return shared_.access_log; }
  std::uint64_t next_id() { return shared_.next_id.fetch_add(1, std::memory_order_relaxed); }
  std::string_view pseudonym() const { return shared_.pseudonym; }
  std::string_view listen() const { return shared_.listen; }
  std::string_view date();  // for a Date field, made anew each second
  bool draining() const { return draining_; }
  const TlsConfig& tls_config() const { return shared_.config.tls; }
  Interception& tls() { return shared_.tls; }
  OriginSessions& sessions() { return sessions_; }
  TlsBuffers& tls_buffers() { return tls_buffers_; }
  OriginPool& pool() { return pool_; }
  PipeStock& pipes() { return pipes_; }
  Connector& connector() { return connector_; }
  RobotsDesk& robots() { return shared_.robots; }
  void fetch_robots(const std::string& origin, Inside place,
                    Duration patience);                 // the desk is told
  void serve_inside(OwnedSocket socket, Inside place);  // a client of our own
  void post(std::function<void()> task) override;       // any thread

  // Shared by all connections of the thread: good until the next read.
  std::span<char> scratch() { return scratch_; }
  Gather& to_origin() { return to_origin_; }
  Gather& to_client() { return to_client_; }

  void bury(ClientConn& conn);
  void bury(std::unique_ptr<OriginConn> conn);

 private:
  struct Listener {
    Worker* worker;
    OwnedSocket socket;
    Owned<event, event_free> ready;
  };

  void run();
  void accept(Listener& listener);
  void welcome(OwnedSocket socket, const Address& peer, bool allowed, ExecRunRef run);
  void pause_accepting();
  void resume_accepting();
  void begin_drain();
  void run_posted();
  void dig();

  Shared& shared_;
  Owned<event_base, event_base_free> base_;
  Resolver resolver_;
  Dialer dialer_;
  Connector connector_{resolver_, dialer_};
  OriginSessions sessions_;
  TlsBuffers tls_buffers_;
  OriginPool pool_;
  PipeStock pipes_;
  std::vector<char> scratch_;
  Gather to_origin_, to_client_;
  std::string date_;
  std::int64_t date_second_ = 0;
  bool draining_ = false;
  bool digging_ = false;
  Instant complain_again_{};  // about a lack of descriptors
  std::atomic<bool> idle_{false};
  std::vector<Listener> listeners_;
  std::list<ClientConn> clients_;
  std::list<ClientConn> buried_clients_;
  std::vector<std::unique_ptr<RobotsFetch>> robots_fetches_;
  std::vector<std::unique_ptr<OriginConn>> buried_origins_;
  Owned<event, event_free> burial_, wake_, accept_again_;
  OwnedSocket wake_fd_;
  std::mutex posted_lock_;
  std::vector<std::function<void()>> posted_;  // guarded by posted_lock_
  std::thread thread_;
};

}  // namespace sluice
