#include "proxy/net/dns_message.h"

#include <doctest/doctest.h>

#include <string>

using namespace sluice;
using namespace std::string_literals;
using Status = DnsAnswer::Status;

namespace {

const std::string question = "\1a\7example\0\0\1\0\1"s;

std::string message(const std::string& flags, char records, const std::string& rest) {
  return "\0\0"s + flags + "\0\1\0"s + records + "\0\0\0\0"s + question + rest;
}

std::string record(const std::string& owner, const std::string& type, const std::string& ttl,
                   const std::string& data) {
  return owner + type + "\0\1"s + ttl + '\0' + static_cast<char>(data.size()) + data;
}

std::string listed(const DnsAnswer& answer) {
  std::string text;
  for (const Address& address : answer.addresses)
    text += (text.empty() ? "" : " ") + address.ip_text();
  return text;
}

const std::string v4 = "\0\1"s, v6 = "\0\x1c"s, alias = "\0\5"s, here = "\xc0\x0c"s;
const std::string minute = "\0\0\0\x3c"s, hour = "\0\0\x0e\x10"s;
const std::string one = "\xc0\0\2\1"s, two = "\xc0\0\2\2"s;
const std::string six = "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"s;

}  // namespace

TEST_CASE("dns message: the question") {
  CHECK(dns_question("a.example", DnsType::a) == "\0\0\1\0\0\1\0\0\0\0\0\0"s + question);
  CHECK(dns_question("a.example", DnsType::aaaa).ends_with("\0\0\x1c\0\1"s));
}

TEST_CASE("dns message: what an answer says") {
  struct Row {
    const char* name;
    std::string message;
    DnsType type;
    Status status;
    const char* addresses;
    std::uint32_t ttl_s;
  };
  const Row rows[] = {
      {"two addresses, the shorter TTL",
       message("\x81\x80", 2, record(here, v4, hour, one) + record(here, v4, minute, two)),
       DnsType::a, Status::found, "192.0.2.1 192.0.2.2", 60},
      {"behind an alias",
       message(
           "\x81\x80", 2,
           record(here, alias, minute, "\1b\xc0\x0e"s) + record("\1b\7example\0"s, v4, hour, one)),
       DnsType::a, Status::found, "192.0.2.1", 3600},
      {"the other family", message("\x81\x80", 1, record(here, v6, hour, six)), DnsType::aaaa,
       Status::found, "2001:db8::1", 3600},
      {"no such name", message("\x81\x83", 0, ""), DnsType::a, Status::missing, "", 0},
      {"a server that failed", message("\x81\x82", 0, ""), DnsType::a, Status::failed, "", 0},
      {"a question", message("\x01\x80", 1, record(here, v4, hour, one)), DnsType::a,
       Status::failed, "", 0},
      {"cut short again", message("\x83\x80", 1, record(here, v4, hour, one)), DnsType::a,
       Status::failed, "", 0},
      {"fewer records than it says", message("\x81\x80", 2, record(here, v4, hour, one)),
       DnsType::a, Status::failed, "", 0},
      {"an address of no length",
       message("\x81\x80", 2, record(here, v4, hour, "") + record(here, v4, hour, one)), DnsType::a,
       Status::found, "192.0.2.1", 3600},
  };
  for (const Row& r : rows) {
    CAPTURE(r.name);
    const DnsAnswer answer = read_dns_answer(r.message, r.type);
    CHECK(answer.status == r.status);
    CHECK(listed(answer) == r.addresses);
    if (!answer.addresses.empty()) CHECK(answer.ttl_s == r.ttl_s);
  }
  CHECK(read_dns_answer(message("\x81\x80", 0, ""), DnsType::a).status == Status::found);
}

TEST_CASE("dns message: any beginning of an answer is none") {
  const std::string whole = message("\x81\x80", 1, record(here, v4, hour, one));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(read_dns_answer(whole.substr(0, size), DnsType::a).status == Status::failed);
  }
}

TEST_CASE("dns message: so many addresses and no more") {
  std::string many;
  for (int i = 0; i < 100; ++i) many += record(here, v4, hour, one);
  const DnsAnswer answer = read_dns_answer(message("\x81\x80", 100, many), DnsType::a);
  CHECK(answer.addresses.size() == DnsAnswer::most_addresses);
}
