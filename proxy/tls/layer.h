// One TLS session as a filter between bytes: what came from the peer goes in, plain text comes out,
// and what must go to the peer gathers in the outbox. It never touches a socket, so it never waits
// for one: whoever owns it moves the bytes. Belongs to one worker, like the buffers it borrows.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/net/io.h"
#include "proxy/tls/handles.h"

namespace sluice {

inline constexpr std::size_t kRecordText = 16 * 1024;   // RFC 8446 §5.1: plain text of one record
inline constexpr std::size_t kRecordLimit = 17 * 1024;  // a record on the wire, with room to spare

// One per worker: nothing stays in them between calls.
struct TlsBuffers {
  std::vector<char> intake = std::vector<char>(128 * 1024);
  std::string outbox;
  std::array<char, kRecordText> record;
};

class TlsLayer {
 public:
  TlsLayer(SslPtr ssl, TlsBuffers& buffers);
  TlsLayer(const TlsLayer&) = delete;
  TlsLayer& operator=(const TlsLayer&) = delete;

  // Bytes from the peer. They are used in the next call of handshake() or read(), which keeps a
  // copy of what it did not need.
  void feed(std::string_view bytes);
  void keep(std::string_view bytes) { kept_ += bytes; }  // the same, for later
  bool has_unread() const { return !kept_.empty(); }
  bool has_more() const;  // plain text, or an end, that read() would give without being fed
  std::span<char> intake() { return buffers_.intake; }

  // `moved`: it is complete. `blocked`: it needs more from the peer. `failed`: error() says why.
  Io handshake();
  bool established() const { return established_; }

  // `moved`: some plain text. `ended`: the peer said that it sends no more.
  Io read(char* buffer, std::size_t size, std::size_t& count);
  bool write(std::span<const iovec> pieces);  // into the outbox; false: the session is broken
  void close();                               // close_notify into the outbox, once

  std::string& outbox() { return buffers_.outbox; }
  std::string error();  // of the step that failed
  // The alert of RFC 8446 §6 with which the peer ended the session; -1: none.
  int alert() const { return alert_; }
  SSL* ssl() const { return ssl_.get(); }

 private:
  static int bio_read(BIO* bio, char* out, int size);
  static int bio_write(BIO* bio, const char* bytes, int size);
  static long bio_control(BIO* bio, int what, long, void*);
  static const BIO_METHOD* bio_method();
  static void on_message(int sent, int version, int type, const void* bytes, std::size_t size, SSL*,
                         void* self);

  std::size_t take(char* out, std::size_t size);
  void keep_rest();
  Io failure(int result);
  Io bounded(Io io);  // ends a session in which nothing but TLS comes

  TlsBuffers& buffers_;
  SslPtr ssl_;
  std::string kept_;  // ciphertext that no call has used yet
  std::string_view
      fed_;  // the same, where the caller has it; only between feed() and the next call
  std::size_t without_text_ = 0;  // bytes from the peer since the last plain text
  unsigned key_updates_ = 0;      // of the peer, so far
  std::string error_;
  int alert_ = -1;
  bool established_ = false;
  bool ended_ = false;
  bool broken_ = false;
  bool closed_ = false;  // our close_notify is out
};

}  // namespace sluice
