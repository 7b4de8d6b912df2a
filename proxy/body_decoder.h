// Undoes the content coding of a response body as it streams by, so that it can be searched; the
// client gets the bytes as they came. Output is handed on in small pieces and never collected, and
// what comes out of one coding into the next is limited as well, so a bomb costs nothing but the
// bytes that somebody still wants. One response, one thread.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

namespace sluice {

class BodyDecoder {
 public:
  // Takes the next piece; false: no more is wanted.
  using Sink = std::function<bool(std::string_view)>;

  // Takes so many bytes in all: much may go in of which nothing comes out.
  explicit BodyDecoder(std::size_t limit) : left_(limit) {}
  virtual ~BodyDecoder() = default;
  // False: the bytes are broken or too many, or the sink has had enough; then there is no use in
  // going on.
  bool feed(std::string_view bytes, const Sink& sink);

  static constexpr std::size_t kPiece = 16 * 1024;

 private:
  virtual bool decode(std::string_view bytes, const Sink& sink) = 0;

  std::size_t left_;
};

// For gzip, deflate, br, zstd or two of them, each taking `limit` bytes; null for what we cannot
// read, among it three.
std::unique_ptr<BodyDecoder> make_decoder(std::string_view content_encoding, std::size_t limit);

}  // namespace sluice
