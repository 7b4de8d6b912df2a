#include "proxy/tls/layer.h"

#include <openssl/err.h>

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

// A peer may say things of TLS alone for ever. This is more than OpenSSL takes of certificates.
constexpr std::size_t kMostWithoutText = 128 * 1024;
// RFC 8446 §4.6.3 and §5.5: one is due after some hundred gigabytes. It costs what text of a
// thousand times its size does.
constexpr unsigned kMostKeyUpdates = 1000;

// Not in OpenSSL's headers by a name that says so: SSL_R_ of an alert is this and its number.
constexpr int kAlertReasons = SSL_AD_REASON_OFFSET;

TlsLayer& layer_of(BIO* bio) { return *static_cast<TlsLayer*>(BIO_get_data(bio)); }

}  // namespace

const BIO_METHOD* TlsLayer::bio_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sluice");
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

TlsLayer::TlsLayer(SslPtr ssl, TlsBuffers& buffers) : buffers_(buffers), ssl_(std::move(ssl)) {
  BIO* bio = BIO_new(bio_method());
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_msg_callback(ssl_.get(), on_message);
  SSL_set_msg_callback_arg(ssl_.get(), this);
}

int TlsLayer::bio_read(BIO* bio, char* out, int size) {
  BIO_clear_retry_flags(bio);
  const std::size_t count = layer_of(bio).take(out, static_cast<std::size_t>(size));
  if (count > 0) return static_cast<int>(count);
  BIO_set_retry_read(bio);
  return -1;
}

int TlsLayer::bio_write(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  layer_of(bio).outbox().append(bytes, static_cast<std::size_t>(size));
  return size;
}

long TlsLayer::bio_control(BIO*, int what, long, void*) {
  return what == BIO_CTRL_FLUSH ? 1 : 0;  // the outbox is always ready
}

void TlsLayer::on_message(int sent, int, int type, const void* bytes, std::size_t size, SSL*,
                          void* self) {
  if (sent != 0 || type != SSL3_RT_HANDSHAKE || size == 0) return;
  const bool renews = *static_cast<const unsigned char*>(bytes) == SSL3_MT_KEY_UPDATE;
  static_cast<TlsLayer*>(self)->key_updates_ += renews ? 1 : 0;
}

std::size_t TlsLayer::take(char* out, std::size_t size) {
  const std::size_t count = std::min(size, fed_.size());
  fed_.copy(out, count);
  fed_.remove_prefix(count);
  return count;
}

void TlsLayer::feed(std::string_view bytes) {
  without_text_ += bytes.size();
  if (kept_.empty()) {
    fed_ = bytes;
    return;
  }
  kept_ += bytes;
  fed_ = kept_;
}

bool TlsLayer::has_more() const {
  return !kept_.empty() || ended_ || broken_ || SSL_pending(ssl_.get()) > 0;
}

// What the caller owns is good for this call only.
void TlsLayer::keep_rest() {
  if (fed_.empty()) {
    kept_.clear();
  } else {
    kept_ = std::string(fed_);
  }
  fed_ = {};
}

Io TlsLayer::failure(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: return Io::blocked;
    case SSL_ERROR_ZERO_RETURN: ended_ = true; return Io::ended;
    default: break;
  }
  const unsigned long code = ERR_peek_error();
  const int reason = ERR_GET_REASON(code);
  if (ERR_GET_LIB(code) == ERR_LIB_SSL && reason >= kAlertReasons) alert_ = reason - kAlertReasons;
  error_ = take_openssl_error();
  broken_ = true;
  return Io::failed;
}

Io TlsLayer::handshake() {
  if (broken_) return Io::failed;
  if (fed_.empty()) fed_ = kept_;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  const Io io = result == 1 ? Io::moved : failure(result);
  established_ |= result == 1;
  keep_rest();
  return bounded(io);
}

Io TlsLayer::bounded(Io io) {
  if (io == Io::moved) without_text_ = 0;
  const bool floods = without_text_ > kMostWithoutText || key_updates_ > kMostKeyUpdates;
  if (!floods || io == Io::ended || io == Io::failed) return io;
  error_ = "it sends much and says nothing";
  broken_ = true;
  return Io::failed;
}

Io TlsLayer::read(char* buffer, std::size_t size, std::size_t& count) {
  count = 0;
  if (fed_.empty()) fed_ = kept_;
  Io io = ended_ ? Io::ended : broken_ ? Io::failed : Io::moved;
  while (io == Io::moved && count < size) {
    std::size_t got = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_.get(), buffer + count, size - count, &got);
    count += got;
    if (result != 1) io = failure(result);
  }
  keep_rest();
  return bounded(count > 0 ? Io::moved : io);
}

// Small pieces share a record, so that a head and the body behind it cost one.
bool TlsLayer::write(std::span<const iovec> pieces) {
  if (broken_ || closed_) return false;
  std::size_t held = 0;
  const auto send = [this](const char* bytes, std::size_t size) {
    if (size == 0) return true;
    std::size_t sent = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(ssl_.get(), bytes, size, &sent);
    return result == 1 || failure(result) == Io::moved;
  };
  for (const iovec& piece : pieces) {
    const char* at = static_cast<const char*>(piece.iov_base);
    std::size_t left = piece.iov_len;
    while (left > 0) {
      if (held == 0 && left >= kRecordText) {
        const std::size_t whole = left - left % kRecordText;
        if (!send(at, whole)) return false;
        at += whole;
        left -= whole;
        continue;
      }
      const std::size_t part = std::min(left, kRecordText - held);
      std::memcpy(buffers_.record.data() + held, at, part);
      held += part;
      at += part;
      left -= part;
      if (held < kRecordText) continue;
      if (!send(buffers_.record.data(), held)) return false;
      held = 0;
    }
  }
  return send(buffers_.record.data(), held);
}

void TlsLayer::close() {
  if (!established_ || broken_ || closed_) return;
  closed_ = true;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::string TlsLayer::error() {
  const long verified = SSL_get_verify_result(ssl_.get());
  if (verified != X509_V_OK) return X509_verify_cert_error_string(verified);
  return error_;
}

}  // namespace sluice
