#include "proxy/admin/server.h"

#include <filesystem>

#include "proxy/admin/token.h"
#include "proxy/net/listener.h"

namespace sluice {

std::optional<std::string> admin_listen_problem(const Config& config) {
  if (config.admin.listen == "off") return std::nullopt;
  const auto address = parse_address(config.admin.listen);
  if (!address) return "admin.listen: \"" + config.admin.listen + "\" is not an address and a port";
  if (address->is_loopback() || config.access.clients_given || !config.access.users.empty())
    return std::nullopt;
  return "admin.listen: " + config.admin.listen +
         " can be reached from other machines: say who may come with access.clients or "
         "access.users";
}

Result<std::unique_ptr<AdminServer>> AdminServer::make(const Config& config,
                                                       const std::string& state_directory) {
  if (const auto problem = admin_listen_problem(config)) return Error{*problem};
  std::unique_ptr<AdminServer> server(new AdminServer);
  auto listening = listen_on(*parse_address(config.admin.listen), 1, "--admin");
  if (!listening) return Error{listening.error()};
  server->address_ = listening->address;
  server->tcp_ = std::move(listening->sockets.front());
  std::error_code ignored;  // a directory that cannot be made shows in what should go into it
  if (std::filesystem::create_directories(state_directory, ignored))
    std::filesystem::permissions(state_directory, std::filesystem::perms::owner_all, ignored);
  auto token = read_or_make_token(state_directory);
  if (!token) return Error{token.error()};
  server->token_ = std::move(*token);
  auto local = UnixListener::make(state_directory + "/admin.sock");
  if (local) {
    server->unix_.emplace(std::move(*local));
  } else {
    server->notice_ = local.error();
  }
  return server;
}

void AdminServer::start(AdminSource& source, AdminOptions options) {
  std::vector<AdminListener> listeners;
  listeners.push_back({std::move(tcp_), false});
  if (unix_) listeners.push_back({unix_->take(), true});
  loop_ = std::make_unique<AdminLoop>(source, token_, std::move(listeners), std::move(options));
  loop_->start();
}

}  // namespace sluice
