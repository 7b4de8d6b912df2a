// One TCP connection on a worker's loop, plain or under TLS. It is registered once, edge-triggered,
// and never re-armed: what is ready is remembered here, so a side that must wait costs no system
// call. Owns the socket and the bytes that the peer did not take yet. Only the worker's thread may
// touch it.
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "proxy/net/io.h"
#include "proxy/net/socket.h"

namespace sluice {

class Pipe;
class TlsLayer;

class Stream {
 public:
  // Told that something may go on: bytes to read, room to write, or an end. It may destroy the
  // stream from inside the call.
  class Handler {
   public:
    virtual void on_ready() = 0;

   protected:
    ~Handler() = default;
  };

  Stream(event_base* base, OwnedSocket socket, Handler& handler);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void set_handler(Handler& handler) { handler_ = &handler; }
  int fd() const { return socket_.get(); }

  // A read may find something.
  bool readable() const { return readable_; }
  // For whoever has all he needs: a short read took what there was, so the next look can wait for
  // the kernel's word. Not for others: a reset that came with the last bytes is told only once.
  void rest() { readable_ = readable_ && (!emptied_ || peer_ended_); }
  bool writable() const { return writable_; }
  // The peer sends no more, though some of what it sent may be unread.
  bool peer_ended() const { return peer_ended_; }
  // Asks the kernel whether the peer has ended or reset the connection, if anything happened on it
  // since the last time: for when nobody is going to read.
  bool peer_left();
  // The same for whoever cannot read now, so that an end may stand behind bytes that will be read:
  // it was reset, or it ended, and less than `wanted` came before. A sender of TLS only resets.
  bool falls_short_of(std::uint64_t wanted);
  bool was_reset();
  // Asks the kernel in any case: nothing to read, no end, no error.
  bool is_quiet() const;
  // Under TLS: it ended without saying so (RFC 8446 §6.1), so something may be missing.
  bool cut_off() const { return cut_off_; }

  // From here on everything is TLS. `early` was read already.
  void start_tls(std::unique_ptr<TlsLayer> layer, std::string_view early);
  bool plain() const { return tls_ == nullptr; }
  TlsLayer* tls() { return tls_.get(); }
  // `moved`: done. Call again when something is ready until then.
  Io handshake();

  Io read(char* buffer, std::size_t size, std::size_t& count);
  // Inside the kernel: both ends must be plain.
  Io read_into(Pipe& pipe, std::size_t limit, std::size_t& count);
  Io write_from(Pipe& pipe, std::size_t& count);

  // Sends what the socket takes and keeps the rest. False: the connection is broken.
  bool write(std::span<iovec> pieces);
  bool write(std::string_view bytes);
  bool flush();
  // Between the two, writes are kept and nothing is sent. False: the connection is broken.
  void cork() { corked_ = true; }
  bool uncork();
  std::size_t backlog() const { return backlog_.size() - sent_; }
  // Bytes that the peer has not acknowledged, here or in the kernel.
  std::size_t unsent() const;

  void shutdown_write();
  void reset_on_close();  // the peer must not take the end for a clean one

  // Calls the handler again in the next turn of the loop, so that one busy connection leaves room
  // for the others.
  void yield();

 private:
  void on_event(short what);
  Io receive(char* buffer, std::size_t size, std::size_t& count);
  Io decrypt(char* buffer, std::size_t size, std::size_t& count);
  bool send_outbox();
  bool send_pieces(std::span<iovec> pieces);

  event event_;
  std::unique_ptr<event> again_;  // made by the first yield()
  OwnedSocket socket_;
  Handler* handler_;
  std::unique_ptr<TlsLayer> tls_;
  bool news_ = false;  // a read event that nobody has looked at
  bool readable_ = false;
  bool emptied_ = false;  // by the last read, as far as it could tell
  bool writable_ = true;
  bool peer_ended_ = false;
  bool cut_off_ = false;
  bool resets_ = false;      // the end must not look clean
  bool shut_later_ = false;  // our end goes out behind the backlog
  bool corked_ = false;
  std::size_t sent_ = 0;  // of backlog_
  std::string backlog_;
};

}  // namespace sluice
