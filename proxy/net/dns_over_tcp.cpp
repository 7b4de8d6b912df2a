#include "proxy/net/dns_over_tcp.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "proxy/net/socket.h"

namespace sluice {
namespace {

constexpr timeval kPatience = {5, 0};  // as long as evdns has for a datagram
constexpr std::size_t kPrefix = 2;     // RFC 1035 §4.2.2: the length goes ahead of the message

std::string prefixed(const std::string& message) {
  std::string out{static_cast<char>(message.size() >> 8), static_cast<char>(message.size())};
  return out + message;
}

}  // namespace

DnsOverTcp::DnsOverTcp(event_base* base, std::vector<Address> servers, std::string_view name,
                       DnsType type, Callback callback)
    : base_(base),
      servers_(std::move(servers)),
      question_(prefixed(dns_question(name, type))),
      type_(type),
      callback_(std::move(callback)) {
  ask(servers_[asked_++]);
}

void DnsOverTcp::ask(const Address& server) {
  sockaddr_storage storage;
  const socklen_t size = server.to_sockaddr(storage);
  OwnedSocket socket(::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  connection_.reset(
      bufferevent_socket_new(base_, socket.get(), BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS));
  if (!connection_) std::abort();  // out of memory
  const bool open = static_cast<bool>(socket);
  socket.release();
  bufferevent_setcb(
      connection_.get(),
      [](bufferevent*, void* self) { static_cast<DnsOverTcp*>(self)->on_bytes(); }, nullptr,
      [](bufferevent*, short what, void* self) {
        if ((what & BEV_EVENT_CONNECTED) != 0) return;
        const bool late = (what & BEV_EVENT_TIMEOUT) != 0;
        using Status = DnsAnswer::Status;
        static_cast<DnsOverTcp*>(self)->heard({late ? Status::timed_out : Status::failed});
      },
      this);
  bufferevent_set_timeouts(connection_.get(), &kPatience, &kPatience);
  bufferevent_enable(connection_.get(), EV_READ);
  bufferevent_write(connection_.get(), question_.data(), question_.size());
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (!open || bufferevent_socket_connect(connection_.get(), address, static_cast<int>(size)) != 0)
    bufferevent_trigger_event(connection_.get(), BEV_EVENT_ERROR, BEV_TRIG_DEFER_CALLBACKS);
}

void DnsOverTcp::on_bytes() {
  evbuffer* in = bufferevent_get_input(connection_.get());
  std::array<std::uint8_t, kPrefix> prefix;
  if (evbuffer_copyout(in, prefix.data(), kPrefix) < static_cast<ssize_t>(kPrefix)) return;
  const std::size_t size = static_cast<std::size_t>(prefix[0]) << 8 | prefix[1];
  if (evbuffer_get_length(in) < kPrefix + size) return;
  evbuffer_drain(in, kPrefix);
  std::string message(size, '\0');
  evbuffer_remove(in, message.data(), size);
  heard(read_dns_answer(message, type_));
}

void DnsOverTcp::heard(const DnsAnswer& answer) {
  using Status = DnsAnswer::Status;
  const bool helps = answer.status == Status::found || answer.status == Status::missing;
  if (!helps && asked_ < servers_.size()) return ask(servers_[asked_++]);
  connection_.reset();
  const Callback run = std::move(callback_);
  run(answer);
}

}  // namespace sluice
