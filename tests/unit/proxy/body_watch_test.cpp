// A block inside every coding, however the bytes are cut; and what a hostile body may cost.
#include "proxy/body_watch.h"

#include <brotli/encode.h>
#include <doctest/doctest.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "policy/classify.h"

using namespace sluice;

namespace {

constexpr std::string_view kBlock = "<p>unusual traffic from your computer network</p>";
constexpr std::size_t kScan = 64 * 1024;

std::string deflated(std::string_view text, int window) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, window, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string brotli(std::string_view text) {
  std::size_t size = BrotliEncoderMaxCompressedSize(text.size());
  std::string out(size, '\0');
  REQUIRE(BrotliEncoderCompress(5, BROTLI_MAX_WINDOW_BITS, BROTLI_MODE_TEXT, text.size(),
                                reinterpret_cast<const std::uint8_t*>(text.data()), &size,
                                reinterpret_cast<std::uint8_t*>(out.data())));
  out.resize(size);
  return out;
}

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  REQUIRE_FALSE(ZSTD_isError(size));
  out.resize(size);
  return out;
}

std::string gzip(std::string_view text) { return deflated(text, MAX_WBITS + 16); }

// Each byte by itself, as a careful server flushes what it has.
std::string gzip_byte_by_byte(std::string_view text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(text.size() * 16 + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    stream.avail_in = 1;
    REQUIRE(deflate(&stream, Z_SYNC_FLUSH) == Z_OK);
  }
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

struct Coded {
  std::string coding, body;
};

std::vector<Coded> in_every_coding(std::string_view text) {
  return {{"identity", std::string(text)},
          {"gzip", gzip(text)},
          {"X-GZIP", gzip(text)},
          {"deflate", deflated(text, MAX_WBITS)},
          {"deflate", deflated(text, -MAX_WBITS)},  // as some send it
          {"br", brotli(text)},
          {"zstd", zstd(text)},
          {"gzip, br", brotli(gzip(text))},
          {"br , gzip", gzip(brotli(text))}};
}

BodyWatch watch(const std::string& coding) {
  static std::string value;
  value = coding;
  Head head;
  head.status = 200;
  head.fields.push_back({"Content-Encoding", value, FieldName::content_encoding});
  return {MarkerScan(builtin_body_markers(), 200, kScan), head};
}

bool finds(const Coded& coded, std::size_t piece) {
  BodyWatch looking = watch(coded.coding);
  bool found = false;
  for (std::size_t at = 0; at < coded.body.size(); at += piece) {
    const bool here = looking.feed(std::string_view(coded.body).substr(at, piece)).has_value();
    CHECK_FALSE((found && here));  // once
    found |= here;
  }
  return found;
}

}  // namespace

TEST_CASE("body watch: a block in every coding, whole, in pieces and byte by byte") {
  const std::string page = std::string(20'000, 'x') + std::string(kBlock) + "<p>bye</p>";
  for (const Coded& coded : in_every_coding(page)) {
    CAPTURE(coded.coding);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, coded.body.size()}) {
      CAPTURE(piece);
      CHECK(finds(coded, piece));
    }
  }
}

TEST_CASE("body watch: codings on lines of their own are one list") {
  const std::string body = brotli(gzip(std::string(kBlock)));
  for (const bool in_order : {true, false}) {
    Head head;
    head.status = 200;
    for (const char* coding : {in_order ? "gzip" : "br", in_order ? "br" : "gzip"})
      head.fields.push_back({"Content-Encoding", coding, FieldName::content_encoding});
    BodyWatch looking(MarkerScan(builtin_body_markers(), 200, kScan), head);
    CHECK(looking.feed(body).has_value() == in_order);
  }
}

TEST_CASE("body watch: what came with the head, in every framing") {
  const MarkerScan scan(builtin_body_markers(), 429, kScan);
  const std::string page(kBlock);
  const std::string chunked = "10;a=b\r\n" + page.substr(0, 16) + "\r\n" + "21\r\n" +
                              page.substr(16) + "\r\n0\r\n\r\nHTTP/1.1";
  REQUIRE(page.size() == 0x10 + 0x21);
  struct Row {
    const char* name;
    Framing framing;
    std::uint64_t length;
    std::string bytes;
    bool found;
  };
  const Row rows[] = {
      {"none", Framing::none, 0, page, false},
      {"length", Framing::length, page.size(), page + "HTTP/1.1", true},
      {"length, of which a part is here", Framing::length, 1'000'000, page, true},
      {"behind the length", Framing::length, 10, page, false},
      {"until close", Framing::until_close, 0, page, true},
      {"chunked", Framing::chunked, 0, chunked, true},
      {"chunked, cut", Framing::chunked, 0, chunked.substr(0, 40), false},
      {"chunked, malformed", Framing::chunked, 0, "zz\r\n" + page, false},
      {"nothing yet", Framing::chunked, 0, "", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Head head;
    head.status = 429;
    head.framing = row.framing;
    head.length = row.length;
    CHECK(marker_at_hand(scan, head, row.bytes).has_value() == row.found);
  }
}

TEST_CASE("body watch: beyond `scan` nothing is found, in any coding") {
  const std::string page = std::string(kScan, 'x') + std::string(kBlock);
  for (const Coded& coded : in_every_coding(page)) {
    CAPTURE(coded.coding);
    CHECK_FALSE(finds(coded, 4096));
  }
}

TEST_CASE("body watch: what cannot be decoded is not looked at, and harms nobody") {
  const std::string page(kBlock);
  for (Coded coded : in_every_coding(page)) {
    if (coded.coding == "identity") continue;
    CAPTURE(coded.coding);
    Coded broken = coded;
    broken.body[0] ^= 0x55;
    broken.body += std::string(1000, '\xff');
    static_cast<void>(finds(broken, 3));
    Coded cut = coded;
    cut.body.resize(cut.body.size() / 4);
    CHECK_FALSE(finds(cut, 5));
  }
  for (const char* unknown : {"compress", "gzip, br, zstd", "gzip,", ",", "aes128gcm"}) {
    CAPTURE(unknown);
    CHECK(watch(unknown).done());
  }
}

TEST_CASE("body watch: a bomb is given up once enough of it was seen") {
  const std::string zeros(100 << 20, '\0');
  for (const Coded& coded : {Coded{"gzip", gzip(zeros)}, Coded{"br", brotli(zeros)},
                             Coded{"zstd", zstd(zeros)}, Coded{"gzip, gzip", gzip(gzip(zeros))}}) {
    CAPTURE(coded.coding);
    const auto decoder = make_decoder(coded.coding, SIZE_MAX);
    REQUIRE(decoder);
    std::size_t seen = 0, largest = 0;
    const bool more = decoder->feed(coded.body, [&](std::string_view piece) {
      seen += piece.size();
      largest = std::max(largest, piece.size());
      return seen < kScan;
    });
    CHECK_FALSE(more);
    CHECK(seen < kScan + BodyDecoder::kPiece + 1);
    CHECK(largest <= BodyDecoder::kPiece);
  }
}

TEST_CASE("body watch: what unpacks to nothing is given up, too") {
  const std::string nothing = repeated(gzip(""), 200'000);  // 4 MB
  for (const Coded& coded :
       {Coded{"gzip", nothing}, Coded{"gzip, gzip", gzip(nothing)},
        Coded{"gzip, br", brotli(nothing)}, Coded{"gzip, zstd", zstd(nothing)}}) {
    CAPTURE(coded.coding);
    BodyWatch looking = watch(coded.coding);
    CHECK_FALSE(looking.feed(coded.body).has_value());
    CHECK(looking.done());
  }
}

TEST_CASE("body watch: a page that was flushed byte by byte is looked at whole") {
  const std::string page = std::string(kScan - kBlock.size(), 'x') + std::string(kBlock);
  CHECK(finds({"gzip", gzip_byte_by_byte(page)}, 4096));
  CHECK(finds({"gzip, br", brotli(gzip_byte_by_byte(page))}, 4096));
}
