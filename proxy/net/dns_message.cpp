#include "proxy/net/dns_message.h"

#include <algorithm>
#include <limits>

namespace sluice {
namespace {

constexpr std::size_t kHeader = 12;
constexpr std::uint16_t kInternet = 1;  // RFC 1035 §3.2.4
constexpr unsigned kResponse = 0x8000, kCut = 0x0200, kRcode = 0x000f, kNoSuchName = 3;

// What was read is consumed; past the end everything is 0 and `whole` is no more.
class Bytes {
 public:
  explicit Bytes(std::string_view text) : rest_(text) {}

  bool whole() const { return whole_; }
  std::string_view take(std::size_t size) {
    whole_ = whole_ && size <= rest_.size();
    if (!whole_) return {};
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::uint32_t number(std::size_t size) {
    std::uint32_t value = 0;
    for (const char c : take(size)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  // RFC 1035 §4.1.4: labels up to an empty one, or up to a pointer to where the name goes on.
  void skip_name() {
    while (whole_) {
      const std::uint32_t size = number(1);
      if (size == 0) return;
      if (size >= 0xc0) {
        take(1);
        return;
      }
      take(size);
    }
  }

 private:
  std::string_view rest_;
  bool whole_ = true;
};

Address address(std::string_view data) {
  std::uint8_t ip[16] = {};
  std::copy(data.begin(), data.end(), ip);
  return data.size() == 4 ? Address::v4(ip[0], ip[1], ip[2], ip[3]) : Address::v6(ip);
}

}  // namespace

std::string dns_question(std::string_view name, DnsType type) {
  std::string out("\0\0\1\0\0\1\0\0\0\0\0\0", kHeader);  // one question, recursion desired
  while (!name.empty()) {
    const auto label = name.substr(0, name.find('.'));
    out.append(1, static_cast<char>(label.size())).append(label);
    name.remove_prefix(std::min(name.size(), label.size() + 1));
  }
  out.append(1, '\0');
  for (const auto number : {static_cast<std::uint16_t>(type), kInternet}) {
    out.append(1, static_cast<char>(number >> 8)).append(1, static_cast<char>(number));
  }
  return out;
}

// Whose address it is does not matter: the server has followed the aliases, as it was asked to.
DnsAnswer read_dns_answer(std::string_view message, DnsType type) {
  using Status = DnsAnswer::Status;
  Bytes bytes(message);
  bytes.take(2);
  const std::uint32_t flags = bytes.number(2);
  const std::uint32_t questions = bytes.number(2), records = bytes.number(2);
  bytes.take(4);
  if (!bytes.whole() || (flags & kResponse) == 0 || (flags & kCut) != 0) return {};
  if ((flags & kRcode) == kNoSuchName) return {Status::missing};
  if ((flags & kRcode) != 0) return {};
  for (std::uint32_t i = 0; i < questions && bytes.whole(); ++i) {
    bytes.skip_name();
    bytes.take(4);
  }
  const std::size_t size = type == DnsType::a ? 4 : 16;
  DnsAnswer answer{Status::found, {}, std::numeric_limits<std::uint32_t>::max()};
  for (std::uint32_t i = 0; i < records && bytes.whole(); ++i) {
    bytes.skip_name();
    const std::uint32_t its_type = bytes.number(2), its_class = bytes.number(2);
    const bool fits = its_type == static_cast<std::uint32_t>(type) && its_class == kInternet;
    const std::uint32_t ttl = bytes.number(4);
    const std::string_view data = bytes.take(bytes.number(2));
    if (!fits || data.size() != size || answer.addresses.size() == answer.most_addresses) continue;
    answer.addresses.push_back(address(data));
    answer.ttl_s = std::min(answer.ttl_s, ttl);
  }
  return bytes.whole() ? answer : DnsAnswer{};
}

}  // namespace sluice
