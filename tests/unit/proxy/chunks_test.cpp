#include "proxy/http/chunks.h"

#include <doctest/doctest.h>

#include <string>

using namespace sluice;

namespace {

// The data, then "|" and the trailers when it ended, or "!" and the reason; "…" when it did not
// end.
std::string decode(const std::string& bytes, std::size_t piece, std::string* rest = nullptr) {
  ChunkReader reader(512);
  reader.begin();
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::string copy = bytes.substr(at, piece);
    std::string_view in = copy;
    for (bool on = true; on;) {
      switch (reader.next(in)) {
        case ChunkReader::Event::more: on = false; break;
        case ChunkReader::Event::data: out += reader.data(); break;
        case ChunkReader::Event::error: return out + "!" + std::string(reader.why());
        case ChunkReader::Event::end:
          if (rest != nullptr) *rest = std::string(in) + bytes.substr(at + copy.size());
          return out + "|" + reader.trailers();
      }
    }
  }
  return out + "…";
}

}  // namespace

TEST_CASE("chunks: what they hold") {
  struct Row {
    std::string bytes, expected;
  };
  const Row rows[] = {
      {"0\r\n\r\n", "|"},
      {"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", "hello!|"},
      {"00A\r\n0123456789\r\n000\r\n\r\n", "0123456789|"},
      {"a\r\n\r\n0\r\n\r\nab\n\r\n0\r\n\r\n", "\r\n0\r\n\r\nab\n|"},
      {"1;a\r\nx\r\n0;last=1\r\n\r\n", "x|"},
      {"1;a=b;c=\"d;e\"\r\nx\r\n0\r\n\r\n", "x|"},
      {"1;a=\"\\\"\\\\\\;\"\r\nx\r\n0\r\n\r\n", "x|"},
      {"1 ; a\t= \"\" ;b = c ;d\r\nx\r\n0\r\n\r\n", "x|"},
      {"0\r\nSum: 1 \r\nX:\r\n\r\n", "|Sum: 1\r\nX: \r\n"},
      // RFC 9110 §6.5.1: never what frames, routes or admits.
      {"0\r\nHost: evil\r\nContent-Length: 9\r\nauthorization: x\r\nA: b\r\n\r\n", "|A: b\r\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.bytes);
    for (const std::string behind : {"", "0", "\r\n", "GET / HTTP/1.1\r\n\r\n"}) {
      for (const std::size_t piece :
           {row.bytes.size() + behind.size(), std::size_t{1}, std::size_t{3}}) {
        CAPTURE(piece);
        std::string rest;
        CHECK(decode(row.bytes + behind, piece, &rest) == row.expected);
        CHECK(rest == behind);
      }
    }
  }
}

TEST_CASE("chunks: what is none") {
  const std::string big(600, 'e');
  const std::string rows[] = {
      "\r\n",
      " 5\r\n",
      "5 \r\n",
      "5 a\r\n",
      "5\ta\r\n",
      "0x5\r\n",
      "+5\r\n",
      "-5\r\n",
      "g\r\n",
      "5\n",
      "5\r\r\n",
      "5\rX\n",
      "5;\r\n",
      "5;=b\r\n",
      "5;a=\r\n",
      "5;a b\r\n",
      "5;a=b c\r\n",
      "5;a=\"b\r\n",
      "5;a=\"\n\"\r\n",
      "5;a\n",
      "5;a\rb\r\n",
      "5;a=\"\\\r\n",
      "5,a\r\n",
      "5;a=\"b\"c\r\n",
      "10000000000000005\r\n",
      "fffffffffffffffff\r\n",
      "5;" + big,
      "5;a=\"" + big,
      "1\r\nxy\r\n",
      "1\r\nx\n",
      "1\r\nx\rX",
      "1\r\nx0\r\n\r\n",
      "0\r\n\n",
      "0\r\nA\r\n",
      "0\r\n: b\r\n",
      "0\r\nA : b\r\n",
      "0\r\nA: b\r\n c\r\n",
      "0\r\nA: b\n",
      "0\r\nA: b\rC: d\r\n",
      "0\r\nA: \x01\r\n",
      "0\r\nA: " + big,
  };
  for (const std::string& bytes : rows) {
    CAPTURE(bytes);
    for (const std::size_t piece : {bytes.size(), std::size_t{1}, std::size_t{3}}) {
      CAPTURE(piece);
      CHECK(decode(bytes, piece).find('!') != std::string::npos);
    }
  }
}

TEST_CASE("chunks: extensions that are most of the body") {
  const std::string ends = "0\r\n\r\n";
  std::string small, large;
  for (int i = 0; i < 5000; ++i) small += "1;a=b;c=d;e=f\r\nx\r\n";
  CHECK(decode(small + ends, 1000) == std::string(5000, 'x') + "|");
  for (int i = 0; i < 50; ++i) large += "1;" + std::string(490, 'a') + "\r\nx\r\n";
  const std::string cut = decode(large + ends, 1000);
  CHECK(cut.ends_with("!the chunk extensions are much longer than the data"));
  CHECK(cut.size() < 100);
  std::string paid;
  for (int i = 0; i < 50; ++i)
    paid += "12c;" + std::string(490, 'a') + "\r\n" + std::string(300, 'x') + "\r\n";
  CHECK(decode(paid + ends, 1000) == std::string(15000, 'x') + "|");
}

TEST_CASE("chunks: not the whole of it") {
  for (const std::string bytes : {"", "5", "5\r", "5\r\n", "5\r\nhell", "5\r\nhello",
                                  "5\r\nhello\r\n", "0\r\n", "0\r\n\r", "0\r\nA: b\r\n"}) {
    CAPTURE(bytes);
    CHECK(decode(bytes, 1).ends_with("…"));
  }
}
