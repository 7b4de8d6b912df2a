#include "proxy/http/target.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace sluice;

namespace {

// "authority | host port | path", or "! why".
std::string shown(const Result<Target>& target) {
  if (!target) return "! " + target.error();
  return std::string(target->authority) + " | " + target->host + " " +
         std::to_string(target->port) + " | " + std::string(target->path);
}

struct Row {
  std::string target, expected;
};

const std::string kBadUrl = "! the URL has a fragment or a character that must be percent-encoded";
const std::string kBadHost = "! the host has a character that no host name has";
const std::string kBadNumber = "! the host is a number, but no IPv4 address of four parts";
const std::string kBadPort = "! the port is not a number from 1 to 65535";
const std::string kBadIpv6 = "! what stands in brackets is no IPv6 address";

}  // namespace

TEST_CASE("target: absolute form") {
  const std::string long_label(63, 'a');
  const Row rows[] = {
      {"http://a", "a | a 80 | "},
      {"http://a/", "a | a 80 | /"},
      {"http://a/b/../c%2F?d=e/f?g", "a | a 80 | /b/../c%2F?d=e/f?g"},
      {"http://a?q", "a | a 80 | ?q"},
      {"HTTP://WWW.Example.COM/X", "WWW.Example.COM | www.example.com 80 | /X"},
      {"http://a.:8080/", "a.:8080 | a 8080 | /"},
      {"http://a:/", "a: | a 80 | /"},
      {"http://a:80/", "a:80 | a 80 | /"},
      {"http://a:65535/", "a:65535 | a 65535 | /"},
      {"http://under_score-1.x/", "under_score-1.x | under_score-1.x 80 | /"},
      {"http://127.0.0.1:81/", "127.0.0.1:81 | 127.0.0.1 81 | /"},
      {"http://[::1]/", "[::1] | ::1 80 | /"},
      {"http://[2001:DB8::7]:8080/x", "[2001:DB8::7]:8080 | 2001:db8::7 8080 | /x"},
      {"http://[::ffff:192.0.2.1]/", "[::ffff:192.0.2.1] | 192.0.2.1 80 | /"},
      {"http://a/\\..\\b", "a | a 80 | /\\..\\b"},  // a path's own business: the origin's to judge

      {"", "! the target is no http URL"},
      {"a", "! the target is no http URL"},
      {"/", "! the target is no http URL"},
      {"//a/", "! the target is no http URL"},
      {"http:/a/", "! the target is no http URL"},
      {"http:a", "! the target is no http URL"},
      {"ftp://a/", "! the target is no http URL"},
      {"https://a/",
       "! an https URL is not sent in plain text: let the client make a tunnel with CONNECT, or "
       "ask "
       "for the http:// URL where the host's policy says upgrade = true"},
      {"http://", "! there is no host"},
      {"http:///", "! there is no host"},
      {"http://:80/", "! there is no host"},
      {"http://./", "! there is no host"},
      {"http://?q", "! there is no host"},
      {"http://a../", "! the host has an empty label"},
      {"http://a..b/", "! the host has an empty label"},
      {"http://.a/", "! the host has an empty label"},
      // RFC 9110 §4.2.4: user information is where phishing and parser disagreement live.
      {"http://user@a/", kBadHost},
      {"http://user:secret@a/", kBadPort},
      {"http://@a/", kBadHost},
      {"http://a\\b/", kBadHost},
      {"http://a\\@b/", kBadHost},
      {"http://a%2eb/", kBadHost},
      {"http://a,b/", kBadHost},
      {"http://a;b/", kBadHost},
      {"http://a*/", kBadHost},
      {"http://::1/", "! there is no host"},
      {"http://a:b/", kBadPort},
      {"http://a:0/", kBadPort},
      {"http://a:65536/", kBadPort},
      {"http://a:-1/", kBadPort},
      {"http://a:+80/", kBadPort},
      {"http://a:80:80/", kBadPort},
      {"http://a:99999999999999999999/", kBadPort},
      {"http://[::1/", "! the address has no closing bracket"},
      {"http://[]/", kBadIpv6},
      {"http://[a]/", kBadIpv6},
      {"http://[127.0.0.1]/", kBadIpv6},
      {"http://[fe80::1%25eth0]/", kBadIpv6},
      {"http://[v1.x]/", kBadIpv6},
      {"http://[::1]x/", "! after the host comes something else than a port"},
      {"http://[::1].example/", "! after the host comes something else than a port"},
      {"http://2130706433/", kBadNumber},
      {"http://127.1/", kBadNumber},
      {"http://127.0.0.01/", kBadNumber},
      {"http://1.2.3.4.5/", kBadNumber},
      {"http://0x7f000001/", kBadNumber},
      {"http://0X7F.0x1./", kBadNumber},
      {"http://a.1:80/", kBadNumber},
      {"http://1a/", "1a | 1a 80 | /"},
      {"http://1.2.3.4.in-addr.arpa/", "1.2.3.4.in-addr.arpa | 1.2.3.4.in-addr.arpa 80 | /"},
      {"http://a/#fragment", kBadUrl},
      {"http://a#fragment", kBadUrl},
      {"http://a/ b", kBadUrl},
      {"http://a/\tb", kBadUrl},
      {"http://a/\x7f", kBadUrl},
      {"http://a/\r\nX: y", kBadUrl},
      {"http://a/\xc3\xbc", kBadUrl},
      {"http://\xc3\xbc/", kBadUrl},
      {"http://" + std::string(254, 'a') + "/", "! the host name is too long"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.target);
    CHECK(shown(parse_absolute_form(row.target)) == row.expected);
  }
  CHECK(shown(parse_absolute_form(std::string("http://a/\0", 10))) == kBadUrl);
  CHECK(parse_absolute_form("http://" + std::string(253, 'a') + "/"));
}

TEST_CASE("target: authority form, for CONNECT") {
  const Row rows[] = {
      {"a:443", "a:443 | a 443 | "},
      {"EXAMPLE.com.:8443", "EXAMPLE.com.:8443 | example.com 8443 | "},
      {"[::1]:443", "[::1]:443 | ::1 443 | "},
      {"[0:0:0:0:0:0:0:1]:1", "[0:0:0:0:0:0:0:1]:1 | ::1 1 | "},
      {"[2001:DB8::0:00:1]:1", "[2001:DB8::0:00:1]:1 | 2001:db8::1 1 | "},
      {"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.1]:1 | 10.0.0.1 1 | "},
      {"10.0.0.1:1", "10.0.0.1:1 | 10.0.0.1 1 | "},

      {"", "! there is no host"},
      {":443", "! there is no host"},
      {"a", "! the port is missing"},
      {"a..:443", "! the host has an empty label"},
      {"a:", kBadPort},
      {"a:0", kBadPort},
      {"a:65536", kBadPort},
      {"a:443x", kBadPort},
      {"a:443/", kBadPort},
      {"a: 443", kBadPort},
      {"a:443:443", kBadPort},
      {"::1:443", "! there is no host"},
      {"[::1]", "! the port is missing"},
      {"[::1]:", kBadPort},
      {"[::1]443", "! after the host comes something else than a port"},
      {"[::1:443", "! the address has no closing bracket"},
      {"http://a:443", kBadPort},
      {"a/b:443", kBadHost},
      {"user@a:443", kBadHost},
      {"a\\b:443", kBadHost},
      {"a b:443", kBadHost},
      {"*:443", kBadHost},
      {"a?b:443", kBadHost},
      {"\xc3\xbc:443", kBadHost},
  };
  for (const Row& row : rows) {
    CAPTURE(row.target);
    CHECK(shown(parse_authority_form(row.target)) == row.expected);
  }
  CHECK(shown(parse_authority_form(std::string("a\0b:443", 7))) == kBadHost);
}

TEST_CASE("target: what is meant for the proxy itself") {
  for (const char* target : {"/", "/x?y", "//a/", "*"}) CHECK(is_origin_form(target));
  for (const char* target : {"", "a", "http://a/", "**", "*/", "?x"})
    CHECK_FALSE(is_origin_form(target));
}

TEST_CASE("target: an HTTP/1.1 request names its host, once") {
  const auto valid = [](const std::vector<const char*>& hosts, std::uint8_t minor) {
    Head head;
    head.minor = minor;
    head.fields.push_back({"X", "y", FieldName::other});
    for (const char* host : hosts) head.fields.push_back({"Host", host, FieldName::host});
    return has_valid_host(head);
  };
  for (const char* host : {"", "a", "b:81", "[::1]:81", "other.example", "a_b-c"}) {
    CAPTURE(host);
    CHECK(valid({host}, 1));
  }
  for (const char* host : {"a b", "a,b", "a/b", "a@b", "a\\b", "a\tb", "a?b", "\xc3\xbc"}) {
    CAPTURE(host);
    CHECK_FALSE(valid({host}, 1));
    CHECK_FALSE(valid({host}, 0));
  }
  CHECK_FALSE(valid({}, 1));
  CHECK(valid({}, 0));
  CHECK_FALSE(valid({"a", "a"}, 1));
  CHECK_FALSE(valid({"a", "b"}, 0));
}
