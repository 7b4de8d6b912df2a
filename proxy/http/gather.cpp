#include "proxy/http/gather.h"

#include <charconv>

namespace sluice {
namespace {

constexpr std::size_t kCopyBelow = 4096;  // bytes; cheaper to copy than to point at

}  // namespace

void Gather::clear() {
  text_.clear();
  sealed_ = 0;
  pieces_.clear();
}

std::string& Gather::text() { return text_; }

void Gather::seal() {
  const std::size_t size = text_.size() - sealed_;
  if (size == 0) return;
  if (!pieces_.empty() && pieces_.back().at == nullptr) {
    pieces_.back().size += size;
  } else {
    pieces_.push_back({nullptr, sealed_, size});
  }
  sealed_ = text_.size();
}

void Gather::body(std::string_view bytes, Framing framing) {
  if (framing == Framing::chunked) {
    char hex[16];
    const auto end = std::to_chars(hex, hex + sizeof hex, bytes.size(), 16).ptr;
    text_.append(hex, static_cast<std::size_t>(end - hex)).append("\r\n");
  }
  if (bytes.size() < kCopyBelow) {
    text_ += bytes;
  } else {
    seal();
    pieces_.push_back({bytes.data(), 0, bytes.size()});
  }
  if (framing == Framing::chunked) text_ += "\r\n";
  seal();
}

void Gather::end(const std::string& trailers, Framing framing) {
  if (framing != Framing::chunked) return;
  text_.append("0\r\n").append(trailers).append("\r\n");
  seal();
}

std::span<iovec> Gather::pieces() { return pieces_behind({}); }

std::span<iovec> Gather::pieces_behind(std::string_view first) {
  vectors_.clear();
  if (!first.empty()) vectors_.push_back({const_cast<char*>(first.data()), first.size()});
  for (const Piece& piece : pieces_) {
    const char* at = piece.at != nullptr ? piece.at : text_.data() + piece.offset;
    vectors_.push_back({const_cast<char*>(at), piece.size});
  }
  return vectors_;
}

}  // namespace sluice
