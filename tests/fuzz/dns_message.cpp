// Any bytes as a name server's answer give a bounded list of addresses of the asked type or none.
#include "proxy/net/dns_message.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  for (const DnsType type : {DnsType::a, DnsType::aaaa}) {
    const DnsAnswer answer = read_dns_answer(message, type);
    if (answer.addresses.size() > DnsAnswer::most_addresses) std::abort();
    if (answer.status != DnsAnswer::Status::found && !answer.addresses.empty()) std::abort();
  }
  return 0;
}
