// One question put to one name server after the other, over TCP (RFC 7766 §5): for answers that do
// not fit into a datagram. Belongs to one loop, and is destroyed before it.
#pragma once

#include <event2/bufferevent.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/net/dns_message.h"
#include "proxy/owned.h"

namespace sluice {

class DnsOverTcp {
 public:
  // Comes once, from the loop, never inside the constructor. It may destroy the question.
  using Callback = std::function<void(const DnsAnswer&)>;

  // At least one server. `name` has no trailing dot.
  DnsOverTcp(event_base* base, std::vector<Address> servers, std::string_view name, DnsType type,
             Callback callback);
  DnsOverTcp(const DnsOverTcp&) = delete;
  DnsOverTcp& operator=(const DnsOverTcp&) = delete;

 private:
  void ask(const Address& server);
  void on_bytes();
  void heard(const DnsAnswer& answer);

  event_base* base_;
  const std::vector<Address> servers_;
  std::size_t asked_ = 0;  // of servers_
  const std::string question_;
  const DnsType type_;
  Callback callback_;
  Owned<bufferevent, bufferevent_free> connection_;
};

}  // namespace sluice
