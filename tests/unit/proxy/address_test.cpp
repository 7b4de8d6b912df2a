#include "proxy/net/address.h"

#include <doctest/doctest.h>

#include <string>
#include <unordered_set>

#include "proxy/net/cidr.h"
#include "proxy/net/host_name.h"

using namespace sluice;

TEST_CASE("address: what is an IP address, and how it is written back") {
  struct Row {
    const char *text, *canonical;  // empty: refused
  };
  const Row rows[] = {
      {"127.0.0.1", "127.0.0.1"},
      {"255.255.255.255", "255.255.255.255"},
      {"::1", "::1"},
      {"[::1]", "::1"},
      {"2001:DB8:0:0::7", "2001:db8::7"},
      {"::ffff:10.0.0.1", "10.0.0.1"},
      {"::ffff:a00:1", "10.0.0.1"},
      {"", ""},
      {"127.1", ""},
      {"2130706433", ""},
      {"0x7f.0.0.1", ""},
      {"127.0.0.01", ""},
      {"127.0.0.1 ", ""},
      {" 127.0.0.1", ""},
      {"127.0.0.256", ""},
      {"1.2.3.4.5", ""},
      {"[127.0.0.1]", ""},
      {"[]", ""},
      {"[::1", ""},
      {"::1]", ""},
      {"fe80::1%lo", ""},
      {"1:2:3:4:5:6:7:8:9", ""},
      {"localhost", ""},
      {"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000", ""},
  };
  for (const Row& r : rows) {
    CAPTURE(r.text);
    const auto address = parse_ip(r.text);
    CHECK((address ? address->ip_text() : "") == r.canonical);
  }
  CHECK_FALSE(parse_ip(std::string_view("127.0.0.1\0x", 11)));
}

TEST_CASE("address: with a port") {
  struct Row {
    const char *text, *canonical;
  };
  const Row rows[] = {
      {"127.0.0.1:7878", "127.0.0.1:7878"},
      {"[::1]:80", "[::1]:80"},
      {"[::ffff:127.0.0.1]:80", "127.0.0.1:80"},
      {"0.0.0.0:0", "0.0.0.0:0"},
      {"127.0.0.1:65536", ""},
      {"127.0.0.1:-1", ""},
      {"127.0.0.1:+1", ""},
      {"127.0.0.1:", ""},
      {"127.0.0.1:80 ", ""},
      {"127.0.0.1", ""},
      {"::1:80", ""},
      {":80", ""},
      {"", ""},
      {"localhost:80", ""},
  };
  for (const Row& r : rows) {
    CAPTURE(r.text);
    const auto address = parse_address(r.text);
    CHECK((address ? address->text() : "") == r.canonical);
  }
}

TEST_CASE("address: to sockaddr and back") {
  for (const char* text : {"127.0.0.1:80", "[2001:db8::7]:443"}) {
    CAPTURE(text);
    const Address address = *parse_address(text);
    sockaddr_storage storage;
    const socklen_t length = address.to_sockaddr(storage);
    const auto* generic = reinterpret_cast<const sockaddr*>(&storage);
    CHECK(Address::from_sockaddr(generic, length) == address);
    CHECK_FALSE(Address::from_sockaddr(generic, length - 1));
  }
  sockaddr_storage storage;
  CHECK(Address{}.to_sockaddr(storage) == 0);
  CHECK_FALSE(Address::from_sockaddr(nullptr, 0));
}

TEST_CASE("address: equal values hash alike, others differ") {
  std::unordered_set<Address, AddressHash> set;
  for (int port = 0; port < 100; ++port)
    set.insert(parse_ip("10.0.0.1")->with_port(static_cast<std::uint16_t>(port)));
  CHECK(set.size() == 100);
  CHECK(set.contains(*parse_address("10.0.0.1:42")));
  CHECK_FALSE(set.contains(*parse_address("10.0.0.2:42")));
  CHECK(parse_address("10.0.0.1:1")->same_ip(*parse_address("10.0.0.1:2")));
}

TEST_CASE("address: what kind of place it is") {
  // l loopback, u unspecified, k link-local, d metadata, m multicast, p private
  struct Row {
    const char *ip, *kinds;
  };
  const Row rows[] = {
      {"127.0.0.1", "l"},       {"127.255.0.9", "l"},      {"::1", "l"},
      {"0.0.0.0", "u"},         {"0.1.2.3", "u"},          {"::", "u"},
      {"169.254.0.1", "k"},     {"169.254.169.254", "kd"}, {"fe80::1", "k"},
      {"febf::1", "k"},         {"fec0::1", "p"},          {"100.100.100.200", "dp"},
      {"fd00:ec2::254", "dp"},  {"168.63.129.16", "d"},    {"224.0.0.1", "m"},
      {"239.255.255.255", "m"}, {"255.255.255.255", "m"},  {"ff02::1", "m"},
      {"10.255.0.1", "p"},      {"172.16.0.1", "p"},       {"172.31.255.255", "p"},
      {"172.32.0.1", ""},       {"172.15.0.1", ""},        {"192.168.1.1", "p"},
      {"100.64.0.1", "p"},      {"100.127.0.1", "p"},      {"100.128.0.1", ""},
      {"fc00::1", "p"},         {"fdff::1", "p"},          {"93.184.216.34", ""},
      {"2001:db8::1", ""},
  };
  for (const Row& r : rows) {
    CAPTURE(r.ip);
    const Address a = *parse_ip(r.ip);
    std::string kinds;
    if (a.is_loopback()) kinds += 'l';
    if (a.is_unspecified()) kinds += 'u';
    if (a.is_link_local()) kinds += 'k';
    if (a.is_metadata()) kinds += 'd';
    if (a.is_multicast()) kinds += 'm';
    if (a.is_private()) kinds += 'p';
    CHECK(kinds == r.kinds);
  }
}

TEST_CASE("address: the IPv4 address inside an IPv6 one") {
  struct Row {
    const char *ip, *inner;
  };
  const Row rows[] = {
      {"64:ff9b::a9fe:a9fe", "169.254.169.254"},    // NAT64
      {"64:ff9b:1::a9fe:a9fe", "169.254.169.254"},  // NAT64, local use
      {"2002:a9fe:a9fe::1", "169.254.169.254"},     // 6to4
      {"2001:0:1:2:3:4:f5ff:fffe", "10.0.0.1"},     // Teredo
      {"::ffff:0:10.0.0.1", "10.0.0.1"},            // IPv4-translated
      {"::10.0.0.1", "10.0.0.1"},                   // IPv4-compatible
      {"::1", ""},
      {"::", ""},
      {"2001:db8::a00:1", ""},
      {"10.0.0.1", ""},
  };
  for (const Row& r : rows) {
    CAPTURE(r.ip);
    CHECK(parse_ip(r.ip)->embedded_v4().ip_text() == r.inner);
  }
}

TEST_CASE("cidr: what a range holds") {
  struct Row {
    const char *range, *ip;
    bool inside;
  };
  const Row rows[] = {
      {"10.0.0.0/8", "10.255.255.255", true},
      {"10.0.0.0/8", "11.0.0.0", false},
      {"10.0.0.0/9", "10.128.0.0", false},
      {"0.0.0.0/0", "8.8.8.8", true},
      {"0.0.0.0/0", "::1", false},
      {"::/0", "2001:db8::1", true},
      {"::1", "::1", true},
      {"::1", "::2", false},
      {"192.168.1.7", "192.168.1.7", true},
      {"192.168.1.7/32", "192.168.1.6", false},
      {"fd00::/9", "fd7f::1", true},
      {"fd00::/9", "fd80::1", false},
      {"127.0.0.0/8", "::ffff:127.0.0.1", true},
  };
  for (const Row& r : rows) {
    CAPTURE(r.range);
    CAPTURE(r.ip);
    const auto range = parse_cidr(r.range);
    REQUIRE(range);
    CHECK(range->contains(parse_ip(r.ip)->with_port(99)) == r.inside);
  }
}

TEST_CASE("cidr: what is refused, and why") {
  for (const char* text :
       {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/8/8", "10.0.0/8", "::/129", "[::1]",
        "10.0.0.0/-1", "10.0.0.0/ 8", "::ffff:10.0.0.0/104", "x"}) {
    CAPTURE(text);
    const auto range = parse_cidr(text);
    REQUIRE_FALSE(range);
    CHECK(range.error() ==
          "\"" + std::string(text) + "\" is not an address or a range such as 10.0.0.0/8");
  }
  CHECK(parse_cidr("10.1.2.3/8").error() ==
        "\"10.1.2.3/8\" has bits beyond its prefix; did you mean 10.0.0.0/8?");
}

TEST_CASE("host name: one form for all spellings, nothing that is not a name") {
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  struct Row {
    std::string text, name;
  };
  const Row rows[] = {
      {"Example.COM", "example.com"},
      {"example.com.", "example.com"},
      {"_dmarc.a-b.c1", "_dmarc.a-b.c1"},
      {"1.2.3.4a", "1.2.3.4a"},
      {longest, longest},
      {longest + "b", ""},
      {label + "a.com", ""},
      {"", ""},
      {".", ""},
      {"..", ""},
      {"a..b", ""},
      {".a", ""},
      {"a.com..", ""},
      {"127.1", ""},
      {"2130706433", ""},
      {"0x7f000001", ""},
      {"a.0x", ""},
      {"1.2.3.4", ""},
      {"::1", ""},
      {"a b", ""},
      {"a/b", ""},
      {"a%00b", ""},
      {"b\xc3\xbc"
       "cher.example",
       ""},
      {std::string("a\0b", 3), ""},
  };
  for (const Row& r : rows) {
    CAPTURE(r.text);
    const auto name = HostName::parse(r.text);
    CHECK((name ? std::string(name->view()) : "") == r.name);
  }
  CHECK(HostName::parse("a.com.")->absolute());
  CHECK_FALSE(HostName::parse("a.com")->absolute());
  CHECK(HostName::parse("a.localhost")->is_or_is_below("localhost"));
  CHECK(HostName::parse("localhost")->is_or_is_below("localhost"));
  CHECK_FALSE(HostName::parse("notlocalhost")->is_or_is_below("localhost"));
}
