// One client connection: reads its requests, gives each to the exchange, keeps them in order, and
// ends the connection the right way. One thread owns it for its life; it never deletes itself, the
// worker does.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/exchange.h"
#include "proxy/http/reader.h"
#include "proxy/net/address.h"
#include "proxy/net/deadline.h"
#include "proxy/net/stream.h"
#include "proxy/tunnel.h"

namespace sluice {

class Worker;

class ClientConn final : public Stream::Handler,
                         public Deadline::Handler,
                         public Exchange::Owner,
                         public Tunnel::Owner {
 public:
  // `run`: the one of `sluice exec` through whose door it came, if any.
  ClientConn(Worker& worker, OwnedSocket socket, const Address& peer, bool allowed,
             ExecRunRef run = nullptr);
  ClientConn(Worker& worker, OwnedSocket socket, Inside place);  // a client of our own
  ~ClientConn();

  void start() { on_ready(); }
  void drain();  // the proxy is stopping: leave now, or after the answer under way
  void cut();    // an emergency stop: end what is under way, now
  std::list<ClientConn>::iterator self;

 private:
  enum class State : std::uint8_t {
    idle,       // between requests
    head,       // some of a request head is here
    exchange,   // a request is being served
    entering,   // a tunnel into which we look: its inside begins with a TLS handshake
    tunnel,     // bytes both ways
    lingering,  // our side has ended; what still comes is thrown away
    gone,
  };

  void on_ready() override;
  void on_deadline() override;
  void on_exchange() override { pump(); }
  void set_timeout(Duration wait) override;
  void on_tunnel_moved() override;
  void on_tunnel_end() override;

  bool has_left();
  void pump();
  bool step();
  bool read_request();
  void take(std::string_view in, bool was_kept);
  bool after_exchange();
  void open_tunnel();
  void open_inside();
  bool enter();
  bool enter_plain();
  void report_handshake();
  void end_gracefully();
  void discard();
  void leave();

  Worker& worker_;
  Stream stream_;
  Deadline deadline_;
  Reader reader_;
  Exchange exchange_;
  const Address peer_;
  const bool allowed_;
  State state_ = State::idle;
  bool served_ = false;  // at least one request came
  bool pumping_ = false;
  bool again_ = false;
  std::size_t linger_left_ = 0;
  std::string kept_;  // read, but its turn has not come
  std::unique_ptr<Tunnel> tunnel_;
};

}  // namespace sluice
