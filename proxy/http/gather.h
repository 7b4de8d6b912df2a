// Collects the pieces of one write: framing text that is made here and body bytes that stay where
// they were read. Small pieces are copied together, so a thousand tiny chunks are one piece.
#pragma once

#include <sys/uio.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/head.h"

namespace sluice {

class Gather {
 public:
  void clear();
  bool empty() const { return pieces_.empty(); }

  std::string& text();  // append framing here, then call seal()
  void seal();
  void body(std::string_view bytes, Framing framing);      // must live until the write
  void end(const std::string& trailers, Framing framing);  // closes a chunked body

  // Valid until the next change. Writing may use it up.
  std::span<iovec> pieces();
  std::span<iovec> pieces_behind(std::string_view first);

 private:
  struct Piece {
    const char* at;      // null: in text_
    std::size_t offset;  // in text_
    std::size_t size;
  };
  std::string text_;
  std::size_t sealed_ = 0;
  std::vector<Piece> pieces_;
  std::vector<iovec> vectors_;
};

}  // namespace sluice
