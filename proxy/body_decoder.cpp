#include "proxy/body_decoder.h"

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cstdint>

#include "proxy/http/field.h"

namespace sluice {
namespace {

// RFC 9110 §8.4.1: both are zlib's, and "deflate" comes with its header or, in the wild, without.
class ZlibDecoder final : public BodyDecoder {
 public:
  ZlibDecoder(bool gzip, std::size_t limit)
      : BodyDecoder(limit), gzip_(gzip), ready_(start(gzip ? MAX_WBITS + 16 : MAX_WBITS)) {}
  ~ZlibDecoder() override { inflateEnd(&stream_); }
  ZlibDecoder(const ZlibDecoder&) = delete;
  ZlibDecoder& operator=(const ZlibDecoder&) = delete;

 private:
  bool decode(std::string_view bytes, const Sink& sink) override {
    if (!ready_ || bytes.empty()) return ready_;
    if (!gzip_ && stream_.total_in == 0 &&
        (static_cast<std::uint8_t>(bytes[0]) & 0x0f) != Z_DEFLATED) {
      inflateEnd(&stream_);
      ready_ = start(-MAX_WBITS);
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    std::array<char, kPiece> out;
    for (bool full = true; full || stream_.avail_in > 0;) {
      stream_.next_out = reinterpret_cast<Bytef*>(out.data());
      stream_.avail_out = out.size();
      const int status = inflate(&stream_, Z_NO_FLUSH);
      full = stream_.avail_out == 0;
      if (full || stream_.avail_out < out.size()) {
        if (!sink({out.data(), out.size() - stream_.avail_out})) return false;
      }
      if (status == Z_BUF_ERROR) return true;
      if (status == Z_STREAM_END) {
        // RFC 1952 §2.2: further members may follow.
        if (!gzip_ || stream_.avail_in == 0) return gzip_;
        if (inflateReset(&stream_) != Z_OK) return false;
      } else if (status != Z_OK) {
        return false;
      }
    }
    return true;
  }

  bool start(int window) {
    stream_ = {};
    return inflateInit2(&stream_, window) == Z_OK;
  }

  z_stream stream_{};
  const bool gzip_;
  bool ready_;
};

class BrotliDecoder final : public BodyDecoder {
 public:
  explicit BrotliDecoder(std::size_t limit)
      : BodyDecoder(limit), state_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {}
  ~BrotliDecoder() override { BrotliDecoderDestroyInstance(state_); }
  BrotliDecoder(const BrotliDecoder&) = delete;
  BrotliDecoder& operator=(const BrotliDecoder&) = delete;

 private:
  bool decode(std::string_view bytes, const Sink& sink) override {
    auto in = reinterpret_cast<const std::uint8_t*>(bytes.data());
    std::size_t left = bytes.size();
    std::array<char, kPiece> out;
    for (;;) {
      auto next = reinterpret_cast<std::uint8_t*>(out.data());
      std::size_t room = out.size();
      const auto status = BrotliDecoderDecompressStream(state_, &left, &in, &room, &next, nullptr);
      if (room < out.size() && !sink({out.data(), out.size() - room})) return false;
      if (status == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) return true;
      if (status != BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) return false;
    }
  }

  BrotliDecoderState* state_;
};

class ZstdDecoder final : public BodyDecoder {
 public:
  explicit ZstdDecoder(std::size_t limit) : BodyDecoder(limit), stream_(ZSTD_createDStream()) {
    // RFC 9659: no window above 8 MiB in HTTP.
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, 23);
  }
  ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

 private:
  bool decode(std::string_view bytes, const Sink& sink) override {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    std::array<char, kPiece> piece;
    for (bool full = true; full || in.pos < in.size;) {
      ZSTD_outBuffer out{piece.data(), piece.size(), 0};
      if (ZSTD_isError(ZSTD_decompressStream(stream_, &out, &in))) return false;
      if (out.pos > 0 && !sink({piece.data(), out.pos})) return false;
      full = out.pos == piece.size();
    }
    return true;
  }

  ZSTD_DStream* stream_;
};

// RFC 9110 §8.4: the codings are listed in the order they were applied; the last comes off first.
class ChainDecoder final : public BodyDecoder {
 public:
  ChainDecoder(std::unique_ptr<BodyDecoder> outer, std::unique_ptr<BodyDecoder> inner,
               std::size_t limit)
      : BodyDecoder(limit), outer_(std::move(outer)), inner_(std::move(inner)) {}

 private:
  bool decode(std::string_view bytes, const Sink& sink) override {
    return outer_->feed(bytes, [&](std::string_view piece) { return inner_->feed(piece, sink); });
  }

  std::unique_ptr<BodyDecoder> outer_, inner_;
};

std::unique_ptr<BodyDecoder> one_decoder(std::string_view coding, std::size_t limit) {
  if (equals_ignoring_case(coding, "gzip") || equals_ignoring_case(coding, "x-gzip")) {
    return std::make_unique<ZlibDecoder>(true, limit);
  }
  if (equals_ignoring_case(coding, "deflate")) return std::make_unique<ZlibDecoder>(false, limit);
  if (equals_ignoring_case(coding, "br")) return std::make_unique<BrotliDecoder>(limit);
  if (equals_ignoring_case(coding, "zstd")) return std::make_unique<ZstdDecoder>(limit);
  return nullptr;
}

}  // namespace

bool BodyDecoder::feed(std::string_view bytes, const Sink& sink) {
  const bool too_many = bytes.size() > left_;
  if (too_many) bytes = bytes.substr(0, left_);
  left_ -= bytes.size();
  return decode(bytes, sink) && !too_many;
}

std::unique_ptr<BodyDecoder> make_decoder(std::string_view content_encoding, std::size_t limit) {
  const auto comma = content_encoding.find(',');
  auto first = one_decoder(trim(content_encoding.substr(0, comma)), limit);
  if (comma == std::string_view::npos || !first) return first;
  auto second = one_decoder(trim(content_encoding.substr(comma + 1)), limit);
  if (!second) return nullptr;
  return std::make_unique<ChainDecoder>(std::move(second), std::move(first), limit);
}

}  // namespace sluice
