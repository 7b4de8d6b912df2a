// Starts the admin side: its token, its TCP address and its unix socket, then the loop that serves
// them. Owns the socket's file in the state directory. Main thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "policy/result.h"
#include "proxy/admin/loop.h"
#include "proxy/admin/source.h"
#include "proxy/admin/unix_socket.h"
#include "proxy/config.h"
#include "proxy/net/address.h"

namespace sluice {

// Why the admin side must not listen there; empty: it may.
std::optional<std::string> admin_listen_problem(const Config& config);

class AdminServer {
 public:
  // Binds, so that everything that can be wrong is wrong now. Serves nothing before start().
  static Result<std::unique_ptr<AdminServer>> make(const Config& config,
                                                   const std::string& state_directory);

  const Address& address() const { return address_; }  // with its real port
  // What the operator must know; empty: nothing.
  const std::string& notice() const { return notice_; }

  // `source` must outlive this.
  void start(AdminSource& source, AdminOptions options);

 private:
  AdminServer() = default;

  Address address_;
  std::string token_, notice_;
  OwnedSocket tcp_;
  std::optional<UnixListener> unix_;
  std::unique_ptr<AdminLoop> loop_;
};

}  // namespace sluice
