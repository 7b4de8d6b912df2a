#include <doctest/doctest.h>

#include <string>

#include "unit/proxy/transcript.h"

using namespace sluice;
using namespace sluice::test;

namespace {

const Feeding kRequest{Reader::Kind::request};

std::string request(const std::string& fields, const std::string& body = {}) {
  return "POST http://a/ HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body;
}

}  // namespace

TEST_CASE("reader: requests and what they are read as") {
  struct Row {
    std::string name;
    std::string bytes;
    const char* expected;
  };
  const Row rows[] = {
      {"no fields", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
       "GET http://a/ HTTP/1.1\nHost: a\nframing none\nend\n"},
      {"fields keep their spelling and lose the space around their values",
       "GET http://a/b?c HTTP/1.1\r\nHost: a\r\nX-y:z\r\nEmpty:\r\nBlank: \t \r\nLast:\t v w "
       "\r\n\r\n",
       "GET http://a/b?c HTTP/1.1\nHost: a\nX-y: z\nEmpty: \nBlank: \nLast: v w\nframing "
       "none\nend\n"},
      {"a method nobody knows", "FROB-1.x! http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
       "FROB-1.x! http://a/ HTTP/1.1\nHost: a\nframing none\nend\n"},
      {"methods have case", "get http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
       "get http://a/ HTTP/1.1\nHost: a\nframing none\nend\n"},
      {"empty lines before the request line are nothing",
       "\r\n\r\nGET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
       "GET http://a/ HTTP/1.1\nHost: a\nframing none\nend\n"},
      {"asterisk form", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
       "OPTIONS * HTTP/1.1\nHost: a\nframing none\nend\n"},
      {"authority form", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
       "CONNECT a:443 HTTP/1.1\nHost: a:443\nframing none\nend\n"},
      {"bytes beyond ASCII in a value",
       "GET http://a/ HTTP/1.1\r\nHost: a\r\nX: gr\xc3\xbc\xdf\r\n\r\n",
       "GET http://a/ HTTP/1.1\nHost: a\nX: gr\xc3\xbc\xdf\nframing none\nend\n"},
      {"a body of known length", request("Content-Length: 5\r\n", "hello"),
       "POST http://a/ HTTP/1.1\nHost: a\nContent-Length: 5\nframing length 5\nbody hello\nend\n"},
      {"a body of no length", request("Content-Length: 0\r\n"),
       "POST http://a/ HTTP/1.1\nHost: a\nContent-Length: 0\nframing length 0\nend\n"},
      {"leading zeros are digits too", request("Content-Length: 005\r\n", "hello"),
       "POST http://a/ HTTP/1.1\nHost: a\nContent-Length: 005\nframing length 5\nbody "
       "hello\nend\n"},
      {"chunked",
       request("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
       "POST http://a/ HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nframing chunked\nbody hello "
       "world\n"
       "end\n"},
      {"chunked, in capitals",
       request("TRANSFER-ENCODING: CHUNKED\r\n",
               "A\r\n0123456789\r\n0a\r\n0123456789\r\n000\r\n\r\n"),
       "POST http://a/ HTTP/1.1\nHost: a\nTRANSFER-ENCODING: CHUNKED\nframing chunked\n"
       "body 01234567890123456789\nend\n"},
      {"chunk extensions are read and dropped",
       request("Transfer-Encoding: chunked\r\n",
               "5;a=b ; c=\"d;\\\"e\" ;f\r\nhello\r\n0;last\r\n\r\n"),
       "POST http://a/ HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nframing chunked\nbody "
       "hello\nend\n"},
      {"trailers that may be passed on",
       request("Transfer-Encoding: chunked\r\n",
               "1\r\nx\r\n0\r\nX-Sum:  9\r\nX-Empty:\r\nDate: today \r\n\r\n"),
       "POST http://a/ HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nframing chunked\nbody x\n"
       "trailer X-Sum: 9\ntrailer X-Empty: \ntrailer Date: today\nend\n"},
      {"trailers that may not",
       request(
           "Transfer-Encoding: chunked\r\n",
           "0\r\nHost: b\r\nAuthorization: me\r\n"
           "Cookie: c\r\nConnection: close\r\nProxy-Authorization: x\r\nVia: v\r\nX: 1\r\n\r\n"),
       "POST http://a/ HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nframing chunked\ntrailer X: "
       "1\nend\n"},
      {"HTTP/1.0 closes", "GET http://a/ HTTP/1.0\r\n\r\n",
       "GET http://a/ HTTP/1.0\nframing none, then close\nend\n"},
      {"HTTP/1.0 that would stay", "GET http://a/ HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
       "GET http://a/ HTTP/1.0\nConnection: Keep-Alive\nframing none, then close\nend\n"},
      {"HTTP/1.0 with a body", "POST http://a/ HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi",
       "POST http://a/ HTTP/1.0\nContent-Length: 2\nframing length 2, then close\nbody hi\nend\n"},
      {"HTTP/1.1 that closes, with a tab behind it",
       "GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: close\t, x\r\nConnection: y\r\n\r\n",
       "GET http://a/ HTTP/1.1\nHost: a\nConnection: close\t, x\nConnection: y\nframing none, then "
       "close\nend\n"},
      {"HTTP/1.1 that closes", "GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n",
       "GET http://a/ HTTP/1.1\nHost: a\nConnection: x, CLOSE\nframing none, then close\nend\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    check_reading(kRequest, row.bytes, row.expected);
  }
}

TEST_CASE("reader: request lines that are none") {
  struct Row {
    const char* line;
    int status;
  };
  const Row rows[] = {
      {" GET http://a/ HTTP/1.1", 400},
      {"GET\thttp://a/ HTTP/1.1", 400},
      {"GET  http://a/ HTTP/1.1", 400},
      {"GET http://a/  HTTP/1.1", 400},
      {"GET http://a/\tHTTP/1.1", 400},
      {"GET http://a/ HTTP/1.1 ", 400},
      {"GET http://a/ b HTTP/1.1", 400},
      {"GET http://a/", 400},
      {"GET ", 400},
      {"GET  HTTP/1.1", 400},
      {"G(T http://a/ HTTP/1.1", 400},
      {"G\x80T http://a/ HTTP/1.1", 400},
      {"\rGET http://a/ HTTP/1.1", 400},
      {"\nGET http://a/ HTTP/1.1", 400},
      {"\r\n\rGET http://a/ HTTP/1.1", 400},
      {"GET http://a/\rX HTTP/1.1", 400},
      {"GET http://a/\x01 HTTP/1.1", 400},
      {"GET http://a/ http/1.1", 400},
      {"GET http://a/ HTTPS/1.1", 400},
      {"GET http://a/ ICE/1.0", 400},
      {"GET http://a/ HTTP/0.9", 505},
      {"GET http://a/ HTTP/1.2", 505},
      {"GET http://a/ HTTP/2.0", 505},
      {"GET http://a/ HTTP/3.0", 505},
      {"GET http://a/ HTTP/11.1", 400},
      {"GET http://a/ HTTP/1.10", 400},
      {"GET http://a/ HTTP/1,1", 400},
      {"PRI * HTTP/2.0", 505},
  };
  for (const Row& row : rows) {
    check_refused(kRequest, std::string(row.line) + "\r\nHost: a\r\n\r\n", row.status);
  }
  // Methods are bounded apart from the head, so that garbage is told early.
  check_refused(kRequest, std::string(65, 'M') + " http://a/ HTTP/1.1\r\n\r\n", 400,
                "the request line does not start with a method");
  check_refused(kRequest, std::string(65, 'M'), 400);
  check_refused(kRequest, "\x16\x03\x01\x02", 400);  // TLS to a plain port
}

TEST_CASE("reader: header sections that two parsers could read differently") {
  const char* sections[] = {
      "X : a\r\n",  // RFC 9112 §5.1: no space before the colon
      "X\t: a\r\n",
      " X: a\r\n",               // a field that looks like the fold of the request line
      "X: a\r\n X: folded\r\n",  // §5.2: obs-fold
      "X: a\r\n\tb\r\n",
      "X:\r\n b\r\n",
      "X: a\r\n \r\n",
      "X: a\nX: b\r\n",  // §2.2: only CRLF ends a line
      "X: a\rX: b\r\n",
      "X: a\r\r\nX: b\r\n",
      "X: a\n\r\n",
      "X: a\013b\r\n",
      "X: a\177b\r\n",
      ": a\r\n",
      "X\r\n",
      "X Y: a\r\n",
      "X\"Y: a\r\n",
      "H\xc3\xb6st: a\r\n",
      "X(1): a\r\n",
  };
  for (const char* section : sections) check_refused(kRequest, request(section), 400);
  using namespace std::string_literals;
  check_refused(kRequest, request("X: a\0b\r\n"s), 400);
  check_refused(kRequest, request("X\0: a\r\n"s), 400);
  check_refused(kRequest, "GET http://a/ HTTP/1.1\nHost: a\r\n\r\n", 400);
  check_refused(kRequest, "GET http://a/ HTTP/1.1\r\nHost: a\r\n\n", 400);
  check_refused(kRequest, "GET http://a/ HTTP/1.1\n\n", 400);
  check_refused(kRequest, "GET http://a/ HTTP/1.1\r\nHost: a\n\n", 400);
}

TEST_CASE("reader: framing that could smuggle a request") {
  const std::string not_one = "Content-Length is not one whole number";
  const std::string unknown = "the only transfer coding understood is chunked";
  const std::string not_last = "Transfer-Encoding does not end in chunked";
  struct Row {
    std::string fields;
    int status;
    std::string why;  // empty: llhttp says it in words of its own
  };
  const Row rows[] = {
      {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400, ""},
      {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400, ""},
      {"Transfer-Encoding: identity\r\nContent-Length: 5\r\n", 400, ""},
      {"Content-Length: 5\r\nTransfer-Encoding: x\r\n", 400, ""},
      {"Content-Length: 5\r\nContent-Length: 5\r\n", 400, ""},
      {"Content-Length: 5\r\nContent-Length: 6\r\n", 400, ""},
      {"Content-Length: 5\r\ncontent-length: 5\r\n", 400, ""},
      {"Content-Length: 5, 5\r\n", 400, ""},
      {"Content-Length: 5,6\r\n", 400, ""},
      {"Content-Length: +5\r\n", 400, ""},
      {"Content-Length: -5\r\n", 400, ""},
      {"Content-Length: 0x5\r\n", 400, ""},
      {"Content-Length: 5.0\r\n", 400, ""},
      {"Content-Length: 5 5\r\n", 400, ""},
      {"Content-Length: five\r\n", 400, ""},
      {"Content-Length:\r\n", 400, ""},
      {"Content-Length: \r\n", 400, ""},
      {"Content-Length: 18446744073709551616\r\n", 400, ""},
      {"Content-Length: 1000000000000000000\r\n", 400, not_one},
      {"Content-Length: 5\r\n 6\r\n", 400, ""},
      {"Content-Length\r\n : 5\r\n", 400, ""},
      {"Transfer-Encoding: identity\r\n", 400, not_last},
      {"Transfer-Encoding: gzip\r\n", 400, ""},
      {"Transfer-Encoding: chunked, gzip\r\n", 400, ""},
      {"Transfer-Encoding: gzip, chunked\r\n", 501, unknown},
      {"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", 501, unknown},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400, ""},
      {"Transfer-Encoding: chunked, chunked\r\n", 400, ""},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400, ""},
      {"Transfer-Encoding: chunked, identity\r\n", 400, ""},
      {"Transfer-Encoding: xchunked\r\n", 400, ""},
      {"Transfer-Encoding: chunkedx\r\n", 400, ""},
      {"Transfer-Encoding: chunked;q=1\r\n", 400, ""},
      {"Transfer-Encoding: \"chunked\"\r\n", 400, ""},
      {"Transfer-Encoding: ,chunked\r\n", 501, unknown},
      {"Transfer-Encoding: chunked,\r\n", 400, ""},
      {"Transfer-Encoding:\r\n", 400, ""},
      {"Transfer-Encoding:\x0b"
       "chunked\r\n",
       400, ""},
      {"Transfer-Encoding:\r\n chunked\r\n", 400, ""},
      {"Transfer-Encoding : chunked\r\n", 400, ""},
      {"X: y\r\n Transfer-Encoding: chunked\r\n", 400, ""},
      {"X: y\rTransfer-Encoding: chunked\r\n", 400, ""},
      {"X: y\nTransfer-Encoding: chunked\r\n", 400, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.fields);
    check_refused(kRequest, request(row.fields, "0\r\n\r\n"), row.status, row.why);
  }
  check_refused(kRequest, "POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                400, "HTTP/1.0 has no Transfer-Encoding");
  // A name that only looks like one of them frames nothing.
  for (const char* field :
       {"Content_Length: 5\r\n", "Transfer_Encoding: chunked\r\n",
        "X-Transfer-Encoding: chunked\r\n", "Transfer-Encodings: chunked\r\n"}) {
    CAPTURE(field);
    const std::string text = transcript(kRequest, request(field), 1000);
    CHECK(text.ends_with("framing none\nend\n"));
  }
}

TEST_CASE("reader: chunks that are none") {
  const std::string fields = "Transfer-Encoding: chunked\r\n";
  for (const std::string body : {
           "g\r\n",  // no hexadecimal digit
           "\r\n",   // no digit at all
           ";ext\r\nhello\r\n",
           "-1\r\n",
           "+5\r\nhello\r\n",
           "0x5\r\nhello\r\n",
           " 5\r\nhello\r\n",
           "5 \r\nhello\r\n",
           "5;\r\nhello\r\n",
           "5;=b\r\nhello\r\n",
           "5;a=\r\nhello\r\n",
           "5;a=\"b\r\nhello\r\n",
           "5;a b\r\nhello\r\n",
           "5\t\r\nhello\r\n",
           "5\nhello\r\n0\r\n\r\n",  // bare LF
           "5\r\nhello\n0\r\n\r\n",
           "5\r\nhello\r\n0\n\n",
           "5\r\nhello\r\n0\r\n\n",
           "5\rhello\r\n",  // bare CR
           "5\r\r\nhello\r\n",
           "5\r\nhelloX\r\n",         // longer than it said
           "5\r\nhell\r\n0\r\n\r\n",  // shorter than it said
           "5;a\nb\r\nhello\r\n",
           "5;a\rb\r\nhello\r\n",
           "5;a\x01\r\nhello\r\n",
           "FFFFFFFFFFFFFFFFF\r\n",  // 17 digits
           "10000000000000000\r\n",
           "0\r\nX : 1\r\n\r\n",  // trailers are as strict as the head
           "0\r\nX: 1\r\n folded\r\n\r\n",
           "0\r\nX: 1\r\n\tfolded\r\n\r\n",
           "0\r\n folded\r\n\r\n",
           "0\r\nX: 1\nY: 2\r\n\r\n",
           "0\r\nX: 1\rY: 2\r\n\r\n",
           "0\r\nX: a\x01\r\n\r\n",
           "0\r\nno colon\r\n\r\n",
       }) {
    check_refused(kRequest, request(fields, body), 400);
  }
}

TEST_CASE("reader: a CR and LF between a trailer's fold is not taken for its value") {
  // The same bytes, cut at every place: what is accepted must not depend on the cut.
  const std::string bytes =
      request("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nX: 1\r\nY: 2\r\n\r\n");
  const std::string whole = transcript(kRequest, bytes, bytes.size());
  for (std::size_t piece = 1; piece < bytes.size(); ++piece) {
    CAPTURE(piece);
    CHECK(transcript(kRequest, bytes, piece) == whole);
  }
}

TEST_CASE("reader: limits of a head") {
  const Feeding tight{Reader::Kind::request, 200};
  const auto with_target = [](std::size_t size) {
    return "GET http://a/" + std::string(size, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n";
  };
  const auto with_value = [](std::size_t size) {
    return "GET http://a/ HTTP/1.1\r\nHost: a\r\nX: " + std::string(size, 'x') + "\r\n\r\n";
  };
  const std::size_t target_fits = 200 - with_target(0).size();
  const std::size_t value_fits = 200 - with_value(0).size();
  CHECK(transcript(tight, with_target(target_fits), 1).ends_with("end\n"));
  CHECK(transcript(tight, with_value(value_fits), 1).ends_with("end\n"));
  check_refused(tight, with_target(target_fits + 1), 431);
  check_refused(tight, with_target(1000), 414,
                "the request target is longer than the limit for a head");
  check_refused(tight, with_value(value_fits + 1), 431,
                "the header section is larger than the limit");
  check_refused(tight, with_value(1000), 431);
  std::string many = "GET http://a/ HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 50; ++i) many += "a:b\r\n";
  check_refused(tight, many + "\r\n", 431);
  check_refused(tight, "GET http://a/" + std::string(1000, 'x'), 414);  // and it never ends

  // Chunk lines and trailers have the same bound, each between two pieces of the body.
  const std::string chunked =
      "POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  check_refused(tight, chunked + "5;" + std::string(4100, 'e') + "\r\nhello\r\n", 400,
                "a chunk extension is too long");
  check_refused(tight, chunked + "0\r\nX: " + std::string(300, 'e') + "\r\n\r\n", 400,
                "the trailer section is larger than the limit");
  std::string small_chunks = chunked;
  for (int i = 0; i < 100; ++i) small_chunks += "1\r\nx\r\n";
  CHECK(transcript(tight, small_chunks + "0\r\n\r\n", 1)
            .ends_with(std::string(100, 'x') + "\nend\n"));
}

TEST_CASE("reader: bounds on what is many") {
  std::string many;
  for (int i = 0; i < 999; ++i) many += "x:\r\n";
  const auto accepted = [](const std::string& bytes) {
    Reader reader(Reader::Kind::request, 65536);
    std::string_view in = bytes;
    return reader.next(in) == Reader::Event::head;
  };
  CHECK(accepted(request(many)));
  check_refused(kRequest, request(many + "x:\r\n"), 431, "the header section has too many fields");
  std::string blank;
  for (int i = 0; i < 8; ++i) blank += "\r\n";
  CHECK(accepted(blank + request("")));
  check_refused(kRequest, blank + "\r\n" + request(""), 400,
                "there are too many empty lines before the request line");
}

TEST_CASE("reader: a trailer section has none of the fields that Connection names") {
  check_reading(kRequest,
                request("Connection: x-b, X-A\r\nTransfer-Encoding: chunked\r\n",
                        "0\r\nx-a: 1\r\nX-B: 2\r\nX-C: 3\r\n\r\n"),
                "POST http://a/ HTTP/1.1\nHost: a\nConnection: x-b, X-A\nTransfer-Encoding: "
                "chunked\nframing chunked\ntrailer X-C: 3\nend\n");
}

TEST_CASE("reader: pipelined requests come out one after the other") {
  const std::string bytes =
      "GET http://a/1 HTTP/1.1\r\nHost: a\r\n\r\n"
      "POST http://a/2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
      "\r\n"  // RFC 9112 §2.2: some clients send one too many
      "POST http://a/3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\nT: "
      "1\r\n\r\n"
      "GET http://a/4 HTTP/1.1\r\nHost: a\r\n\r\n";
  const char* expected =
      "GET http://a/1 HTTP/1.1\nHost: a\nframing none\nend\n"
      "POST http://a/2 HTTP/1.1\nHost: a\nContent-Length: 3\nframing length 3\nbody abc\nend\n"
      "POST http://a/3 HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nframing chunked\nbody de\n"
      "trailer T: 1\nend\n"
      "GET http://a/4 HTTP/1.1\nHost: a\nframing none\nend\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    CAPTURE(piece);
    CHECK(transcript(kRequest, bytes, piece) == expected);
  }
}

TEST_CASE("reader: nothing of a message is left for the one behind an error") {
  Reader reader(Reader::Kind::request, 65536);
  std::string_view in =
      "GET http://a/ HTTP/1.1\r\nHost: a\r\nbad line\r\n\r\nGET http://b/ HTTP/1.1\r\nHost: "
      "a\r\n\r\n";
  CHECK(reader.next(in) == Reader::Event::error);
  std::string_view good = "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n";
  CHECK(reader.next(good) == Reader::Event::error);
  CHECK(reader.finish() == Reader::Event::error);
}

TEST_CASE("reader: a connection that ends between two messages, and inside one") {
  const Feeding ending{Reader::Kind::request, 65536, false, true};
  const std::string cut = "error 400 the connection ended in the middle of a message\n";
  CHECK(transcript(ending, "", 1).empty());
  CHECK(transcript(ending, "\r\n", 1).empty());
  CHECK(transcript(ending, "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 1).ends_with("end\n"));
  CHECK(transcript(ending, "GE", 1) == cut);
  CHECK(transcript(ending, "GET http://a/ HTTP/1.1\r\nHost: a\r\n", 1) == cut);
  CHECK(transcript(ending, request("Content-Length: 5\r\n", "hell"), 1)
            .ends_with("body hell\n" + cut));
  CHECK(transcript(ending, request("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n"), 1)
            .ends_with("body hello\n" + cut));
}

TEST_CASE("reader: a body that somebody else moves") {
  Reader reader(Reader::Kind::request, 65536);
  const std::string head = request("Content-Length: 10\r\n");
  std::string_view in = head;
  CHECK(reader.remaining() == 0);
  REQUIRE(reader.next(in) == Reader::Event::head);
  CHECK(reader.remaining() == 10);
  reader.moved(7);
  in = "abc";
  REQUIRE(reader.next(in) == Reader::Event::body);
  CHECK(reader.data() == "abc");
  CHECK(reader.remaining() == 0);
  CHECK_FALSE(reader.between_messages());
  CHECK(reader.next(in) == Reader::Event::end);
  CHECK(reader.between_messages());
}
