// Turns a host name into addresses: literal, configured table, localhost, hosts file, cache, DNS.
// Belongs to one worker: used only on the thread of its event_base, destroyed before that base.
// Never blocks on the network, never asks DNS for something that is not a host name.
#pragma once

#include <event2/event.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/time.h"
#include "proxy/net/address.h"

namespace sluice {

struct Resolution {
  enum class Status : std::uint8_t {
    ok,
    bad_name,   // not a host name, nobody was asked
    not_found,  // no such name, or it has no address
    failed,     // the name server could not say, or too many questions are open
    timed_out,
  };
  Status status = Status::ok;
  std::vector<Address> addresses;  // port 0; in the order to try; not empty when ok
};

struct ResolverOptions {
  std::string hosts_file = "/etc/hosts";
  std::string resolv_conf = "/etc/resolv.conf";
  std::function<Instant()> now;  // empty: the machine's monotonic clock
};

// Why the table `proxy.resolve` cannot be used; empty: it can.
std::optional<std::string> resolve_table_problem(const std::map<std::string, std::string>& table);

class Resolver {
 public:
  using Callback = std::function<void(const Resolution&)>;
  struct Waiter;

  // Dropping it drops the callback, not the query: others may wait for the same name.
  class [[nodiscard]] Handle {
   public:
    Handle();
    explicit Handle(std::unique_ptr<Waiter> waiter);
    Handle(Handle&&) noexcept;
    Handle& operator=(Handle&&) noexcept;
    ~Handle();

   private:
    std::unique_ptr<Waiter> waiter_;
  };

  Resolver(event_base* base, const std::map<std::string, std::string>& fixed,
           ResolverOptions options = {});
  ~Resolver();  // drops every callback that waits for DNS
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // What is known without asking anybody: no allocation. Null: only DNS can tell. The answer is
  // good until the next call to this object.
  const Resolution* find(std::string_view host);

  // The callback comes from the loop, never inside this call, also when the answer is known. It
  // may drop its own handle and others, and ask again; it must not destroy the resolver.
  Handle resolve(std::string_view host, Callback callback);

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace sluice
