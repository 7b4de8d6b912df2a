#include "proxy/http/gather.h"

#include <doctest/doctest.h>

#include <string>

using namespace sluice;

namespace {

std::string bytes_of(std::span<iovec> pieces) {
  std::string out;
  for (const iovec& piece : pieces)
    out.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  return out;
}

}  // namespace

TEST_CASE("gather: framing and small bodies are one piece") {
  Gather gather;
  CHECK(gather.empty());
  gather.text() += "HTTP/1.1 200 OK\r\n\r\n";
  gather.seal();
  gather.body("hello", Framing::length);
  CHECK(gather.pieces().size() == 1);
  CHECK(bytes_of(gather.pieces()) == "HTTP/1.1 200 OK\r\n\r\nhello");
  gather.clear();
  CHECK(gather.empty());
  CHECK(gather.pieces().empty());
}

TEST_CASE("gather: large bodies stay where they are") {
  const std::string large(5000, 'x');
  Gather gather;
  gather.text() += "head";
  gather.seal();
  gather.body(large, Framing::length);
  const auto pieces = gather.pieces();
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[1].iov_base == large.data());
  CHECK(bytes_of(gather.pieces()) == "head" + large);
}

TEST_CASE("gather: chunks") {
  const std::string large(0x1234, 'y');
  Gather gather;
  gather.body("abc", Framing::chunked);
  gather.body(large, Framing::chunked);
  gather.body("0123456789abcdef", Framing::chunked);
  gather.end("X: 1\r\n", Framing::chunked);
  CHECK(bytes_of(gather.pieces()) ==
        "3\r\nabc\r\n1234\r\n" + large + "\r\n10\r\n0123456789abcdef\r\n0\r\nX: 1\r\n\r\n");
  CHECK(gather.pieces().size() == 3);

  SUBCASE("a thousand tiny chunks are one piece") {
    gather.clear();
    for (int i = 0; i < 1000; ++i) gather.body("z", Framing::chunked);
    CHECK(gather.pieces().size() == 1);
  }
}

TEST_CASE("gather: only a chunked body needs an end") {
  for (const Framing framing : {Framing::none, Framing::length, Framing::until_close}) {
    Gather gather;
    gather.end("X: 1\r\n", framing);
    CHECK(gather.empty());
  }
}

TEST_CASE("gather: something else may go first") {
  Gather gather;
  gather.body("body", Framing::length);
  CHECK(bytes_of(gather.pieces_behind("head ")) == "head body");
  CHECK(gather.pieces_behind("head ").size() == 2);
  CHECK(bytes_of(gather.pieces()) == "body");
}

TEST_CASE("gather: text that moves while it grows is found again") {
  const std::string large(600, 'L');
  Gather gather;
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    gather.body("small", Framing::length);
    gather.body(large, Framing::length);
    expected += "small" + large;
  }
  CHECK(bytes_of(gather.pieces()) == expected);
}
