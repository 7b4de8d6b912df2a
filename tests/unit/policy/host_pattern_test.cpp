#include "policy/host_pattern.h"

#include <doctest/doctest.h>

#include <string>

#include "policy/punycode.h"

using namespace sluice;

namespace {

// The pattern in its one spelling, or "! why".
std::string read(std::string_view text) {
  const auto pattern = parse_host_pattern(text);
  return pattern ? to_string(*pattern) : "! " + pattern.error();
}

std::string normal(std::string_view host) {
  HostBuffer buffer;
  return std::string(normalise_host(host, buffer));
}

struct Row {
  std::string text, expected;
};

}  // namespace

TEST_CASE("host pattern: one spelling for each") {
  const Row rows[] = {
      {"api.example.com", "api.example.com"},
      {"API.Example.COM.", "api.example.com"},
      {"api.example.com:8443", "api.example.com:8443"},
      {"*.example.org", "*.example.org"},
      {"*.example.org:80", "*.example.org:80"},
      {"*", "*"},
      {"*:8080", "*:8080"},
      {"localhost", "localhost"},
      {"_dmarc.a-b.c1", "_dmarc.a-b.c1"},
      {"127.0.0.1", "127.0.0.1"},
      {"127.0.0.1:81", "127.0.0.1:81"},
      {"::1", "[::1]"},
      {"[::1]", "[::1]"},
      {"[::1]:443", "[::1]:443"},
      {"2001:DB8:0:0:0:0:0:7", "[2001:db8::7]"},
      {"[2001:0db8:0000:0000:0001:0000:0000:0001]", "[2001:db8::1:0:0:1]"},
      {"::ffff:192.0.2.1", "192.0.2.1"},
      {"[::ffff:c000:201]:80", "192.0.2.1:80"},
      {"::", "[::]"},
      {"1:2:3:4:5:6:7:8", "[1:2:3:4:5:6:7:8]"},
      {"1:2:3:4:5:6:1.2.3.4", "[1:2:3:4:5:6:102:304]"},
      {"1::", "[1::]"},
      // IDN: RFC 3492's and IDNA's own examples.
      {"bücher.example", "xn--bcher-kva.example"},
      {"*.Bücher.example", "*.xn--bcher-kva.example"},
      {"例え.テスト", "xn--r8jz45g.xn--zckzah"},
      {"пример.испытание", "xn--e1afmkfd.xn--80akhbyknj4f"},
      {"xn--bcher-kva.example", "xn--bcher-kva.example"},
      {"😀.example", "xn--e28h.example"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(read(row.text) == row.expected);
    CHECK(read(row.expected) == row.expected);  // and it stays what it is
  }
}

TEST_CASE("host pattern: what is none") {
  const std::string letters = "! a host name holds letters, digits, '-', '_' and dots only";
  const std::string star =
      "! '*' stands alone or for whole labels at the start, as in \"*.example.org\"";
  const std::string port = "! a port is a number from 1 to 65535";
  const std::string xn = "! the name has a character that cannot be converted; write its xn-- form";
  const Row rows[] = {
      {"", "! the host name is empty"},
      {".", "! the host name is empty"},
      {"*.", "! the host name is empty"},
      {"a..b", "! a label between two dots is empty"},
      {".a", "! a label between two dots is empty"},
      {"a b", letters},
      {"a/b", "! a host is meant, without scheme and path"},
      {"http://a", "! a host is meant, without scheme and path"},
      {"user@a", letters},
      {"a,b", letters},
      {"-a", "! a label starts or ends with '-'"},
      {"a-.b", "! a label starts or ends with '-'"},
      {"a*", star},
      {"a.*.b", star},
      {"*.*.b", star},
      {"**", star},
      {"*a.b", star},
      {"*.::1", "! an address has no '*'"},
      {"[*.::1]", "! an address has no '*'"},
      {"a:", port},
      {"a:0", port},
      {"a:65536", port},
      {"a:http", port},
      {"a:+1", port},
      {"[::1", "! the ']' is missing"},
      {"[::1]x", "! only a port may follow the ']'"},
      {"[a]", "! not an IPv6 address"},
      {"[127.0.0.1]", "! not an IPv6 address"},
      {":::", "! not an IPv6 address"},
      {"1::2::3", "! not an IPv6 address"},
      {"1:2:3:4:5:6:7", "! not an IPv6 address"},
      {"1:2:3:4:5:6:7:8:9", "! not an IPv6 address"},
      {"1:2:3:4:5:6:7::8", "! not an IPv6 address"},
      {"12345::", "! not an IPv6 address"},
      {"g::", "! not an IPv6 address"},
      {"::1.2.3", "! not an IPv6 address"},
      {"::1.2.3.256", "! not an IPv6 address"},
      {"fe80::1%eth0", "! not an IPv6 address"},
      {"256.0.0.1", "! not an IPv4 address"},
      {"127.1", "! not an IPv4 address"},
      {"1.2.3.4.5", "! not an IPv4 address"},
      {"127.0.0.01", "! not an IPv4 address"},
      {"*.0.0.1", "! an address has no '*'"},
      {"BÜCHER.example", xn},  // capitals beyond ASCII are not folded here
      {"a\xe2\x80\x8b"
       "b",
       xn},                // zero-width space
      {"ａ.example", xn},  // full-width
      {"a\xff", "! the name is not valid UTF-8"},
      {"a\xc0\xaf", "! the name is not valid UTF-8"},
      {"a\xed\xa0\x80", xn},
      {std::string(64, 'a'), "! a label is longer than 63 characters"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(read(row.text) == row.expected);
  }
  std::string longest;
  for (int i = 0; i < 4; ++i) longest += std::string(i < 3 ? 63 : 61, 'a') + ".";
  CHECK(read(longest) == longest.substr(0, 253));
  CHECK(read("a" + longest) == "! a label is longer than 63 characters");
  CHECK(read("a." + longest) == "! the host name is longer than 253 characters");
  CHECK(read(std::string(5000, 'a')) == "! the host name is longer than 253 characters");
}

TEST_CASE("host pattern: a request's host in the same spelling") {
  const Row rows[] = {
      {"API.Example.com", "api.example.com"},
      {"a.", "a"},
      {"[::1]", "::1"},
      {"[2001:DB8::0:7]", "2001:db8::7"},
      {"::1", "::1"},
      {"[::ffff:1.2.3.4]", "1.2.3.4"},
      {"127.0.0.1", "127.0.0.1"},
      {"[::1", ""},
      {"[1::2::3]", ""},
      {"", ""},
      {std::string(254, 'a'), ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(normal(row.text) == row.expected);
  }
}

TEST_CASE("punycode: sample strings of RFC 3492 §7.1") {
  const Row rows[] = {
      {"他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"},
      {"למההםפשוטלאמדבריםעברית", "xn--4dbcagdahymbxekheh6e0a7fei0b"},
      {"почемужеонинеговорятпорусски", "xn--b1abfaaepdrnnbgefbadotcwatmq2g4l"},
      {"2月", "xn--2-636b"},
      {"ascii", "ascii"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto label = to_ascii_label(row.text);
    REQUIRE(label);
    CHECK(*label == row.expected);
  }
}
