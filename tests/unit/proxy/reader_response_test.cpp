#include <doctest/doctest.h>

#include <string>

#include "unit/proxy/transcript.h"

using namespace sluice;
using namespace sluice::test;

namespace {

const Feeding kResponse{Reader::Kind::response};
const Feeding kToHead{Reader::Kind::response, 65536, true};
const Feeding kThenEnds{Reader::Kind::response, 65536, false, true};

std::string ok(const std::string& fields, const std::string& body = {}) {
  return "HTTP/1.1 200 OK\r\n" + fields + "\r\n" + body;
}

}  // namespace

TEST_CASE("reader: responses and what they are read as") {
  struct Row {
    std::string name, bytes, expected;
    Feeding feeding = kResponse;
  };
  const Row rows[] = {
      {"a body of known length", ok("Content-Length: 5\r\n", "hello"),
       "HTTP/1.1 200 OK\nContent-Length: 5\nframing length 5\nbody hello\nend\n"},
      {"a body of no length", ok("Content-Length: 0\r\n"),
       "HTTP/1.1 200 OK\nContent-Length: 0\nframing length 0\nend\n"},
      {"chunked with a trailer",
       ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\nX: y\r\nSet-Cookie: no\r\n\r\n"),
       "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nframing chunked\nbody hello\ntrailer X: y\n"
       "end\n"},
      {"a phrase of several words", "HTTP/1.1 404 Not Found, Sorry\r\nContent-Length: 0\r\n\r\n",
       "HTTP/1.1 404 Not Found, Sorry\nContent-Length: 0\nframing length 0\nend\n"},
      {"an empty phrase", "HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n",
       "HTTP/1.1 404 \nContent-Length: 0\nframing length 0\nend\n"},
      {"no phrase, as many send it", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n",
       "HTTP/1.1 404 \nContent-Length: 0\nframing length 0\nend\n"},
      {"a status beyond those we know", "HTTP/1.1 599 x\r\nContent-Length: 0\r\n\r\n",
       "HTTP/1.1 599 x\nContent-Length: 0\nframing length 0\nend\n"},
      {"204 has no body", "HTTP/1.1 204 No Content\r\n\r\n",
       "HTTP/1.1 204 No Content\nframing none\nend\n"},
      {"304 has none whatever it says", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
       "HTTP/1.1 304 Not Modified\nContent-Length: 9\nframing none\nend\n"},
      {"1xx has none", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
       "HTTP/1.1 103 Early Hints\nLink: </a>\nframing none\nend\n"},
      {"101 has none", "HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
       "HTTP/1.1 101 Go\nUpgrade: x\nConnection: Upgrade\nframing none\nend\n"},
      {"the answer to HEAD has none", ok("Content-Length: 5\r\n"),
       "HTTP/1.1 200 OK\nContent-Length: 5\nframing none\nend\n", kToHead},
      {"nor when it says chunked", ok("Transfer-Encoding: chunked\r\n"),
       "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nframing none\nend\n", kToHead},
      {"until the connection ends", ok("", "hello"),
       "HTTP/1.1 200 OK\nframing until close\nbody hello\nend\n", kThenEnds},
      {"until the connection ends, and nothing came", ok(""),
       "HTTP/1.1 200 OK\nframing until close\nend\n", kThenEnds},
      {"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello",
       "HTTP/1.0 200 OK\nframing until close, then close\nbody hello\nend\n", kThenEnds},
      {"HTTP/1.0 with a length", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
       "HTTP/1.0 200 OK\nContent-Length: 2\nframing length 2, then close\nbody hi\nend\n"},
      {"HTTP/1.0 that stays",
       "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi",
       "HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 2\nframing length 2\nbody hi\n"
       "end\n"},
      {"an origin that closes", ok("Connection: close\r\nContent-Length: 2\r\n", "hi"),
       "HTTP/1.1 200 OK\nConnection: close\nContent-Length: 2\nframing length 2, then close\n"
       "body hi\nend\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    check_reading(row.feeding, row.bytes, row.expected);
  }
}

TEST_CASE("reader: responses that nobody may pass on") {
  const std::string responses[] = {
      "ICY 200 OK\r\n\r\n",
      "HTP/1.1 200 OK\r\n\r\n",
      "\r\nHTTP/1.1 200 OK\r\n\r\n",
      "\nHTTP/1.1 200 OK\r\n\r\n",
      " HTTP/1.1 200 OK\r\n\r\n",
      "<html>",
      "HTTP/1.1 20 OK\r\n\r\n",
      "HTTP/1.1 2000 OK\r\n\r\n",
      "HTTP/1.1 099 OK\r\n\r\n",
      "HTTP/1.1 000 OK\r\n\r\n",
      "HTTP/1.1 +20 OK\r\n\r\n",
      "HTTP/1.1  200 OK\r\n\r\n",
      "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n",
      "HTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n",
      "HTTP/2.0 200 OK\r\n\r\n",
      "HTTP/1.2 200 OK\r\n\r\n",
      ok("X : 1\r\n"),
      ok("X: 1\r\n folded\r\n"),
      ok("X:\r\n folded\r\n"),
      ok(" X: 1\r\n"),
      ok("X: 1\rY: 2\r\n"),
      ok("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
      ok("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
      ok("Content-Length: 5, 5\r\n", "hello"),
      ok("Content-Length: -1\r\n"),
      ok("Content-Length: 99999999999999999999\r\n"),
      ok("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
      ok("Transfer-Encoding: gzip\r\n", "x"),
      ok("Transfer-Encoding: chunked, gzip\r\n", "x"),
      ok("Transfer-Encoding: identity\r\n", "x"),
      ok("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
      ok("Transfer-Encoding: chunked\r\n", "5\nhello\r\n0\r\n\r\n"),
      ok("Transfer-Encoding: chunked\r\n", "5\r\nhelloo\r\n0\r\n\r\n"),
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
  };
  for (const std::string& bytes : responses) {
    CAPTURE(bytes);
    for (const std::size_t piece : {bytes.size(), std::size_t{1}, std::size_t{7}}) {
      CAPTURE(piece);
      CHECK(transcript(kResponse, bytes, piece).find("error ") != std::string::npos);
    }
  }
}

TEST_CASE("reader: interim responses come before the final one") {
  const std::string bytes =
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
      "HTTP/1.1 204 No Content\r\n\r\n";
  const std::string expected =
      "HTTP/1.1 100 Continue\nframing none\nend\n"
      "HTTP/1.1 103 Early Hints\nLink: </a>\nframing none\nend\n"
      "HTTP/1.1 200 OK\nContent-Length: 2\nframing length 2\nbody hi\nend\n"
      "HTTP/1.1 204 No Content\nframing none\nend\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    CAPTURE(piece);
    CHECK(transcript(kResponse, bytes, piece) == expected);
  }
}

TEST_CASE("reader: a response that was cut is never a clean end") {
  const std::string cut = "error 400 the connection ended in the middle of a message\n";
  struct Row {
    std::string bytes, last_lines;
  };
  const Row rows[] = {
      {"HTTP/1.1 200 OK\r\nContent-Le", cut},
      {ok("Content-Length: 5\r\n", "hell"), "body hell\n" + cut},
      {ok("Content-Length: 5\r\n"), "framing length 5\n" + cut},
      {ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n"), "body hello\n" + cut},
      {ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n"), "body hello\n" + cut},
      {ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\nX: y\r\n"), "body hello\n" + cut},
      {ok("Content-Length: 5\r\n", "hello"), "body hello\nend\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.bytes);
    CHECK(transcript(kThenEnds, row.bytes, row.bytes.size()).ends_with(row.last_lines));
    CHECK(transcript(kThenEnds, row.bytes, 1).ends_with(row.last_lines));
  }
  CHECK(transcript(kThenEnds, "", 1).empty());
}

TEST_CASE("reader: the head of a response has its limit too") {
  const Feeding tight{Reader::Kind::response, 200};
  for (const std::string& bytes :
       {"HTTP/1.1 200 " + std::string(300, 'x') + "\r\n\r\n",
        ok("X: " + std::string(300, 'x') + "\r\n"), "HTTP/1.1 200 " + std::string(300, 'x')}) {
    check_refused(tight, bytes, 431, "the header section is larger than the limit");
  }
}
