// A question for a name server and its answer, by their bytes (RFC 1035 §4). Pure: any bytes give
// an answer, and nothing is read outside of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/net/address.h"

namespace sluice {

enum class DnsType : std::uint16_t { a = 1, aaaa = 28 };

struct DnsAnswer {
  enum class Status : std::uint8_t {
    found,    // the name exists, but `addresses` is empty if none of the type does
    missing,  // no such name
    failed,   // the server could not say, or what it said is no answer
    timed_out,
  };
  static constexpr std::size_t most_addresses = 64;  // nobody tries more of them

  Status status = Status::failed;
  std::vector<Address> addresses{};  // port 0
  std::uint32_t ttl_s = 0;           // the shortest of theirs
};

// `name` is a host name without a trailing dot.
std::string dns_question(std::string_view name, DnsType type);
DnsAnswer read_dns_answer(std::string_view message, DnsType type);

}  // namespace sluice
