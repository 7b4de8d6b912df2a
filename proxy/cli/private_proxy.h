// A proxy for one command: `sluice run` on a port of its own, in another process that ends with
// this one. It shares the state directory with the daemon, if there is one, and looks inside HTTPS,
// since whoever uses it trusts the CA.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "policy/result.h"
#include "proxy/config_reader.h"

namespace sluice {

class PrivateProxy {
 public:
  static Result<std::unique_ptr<PrivateProxy>> start(const ConfigFlags& flags,
                                                     const LoadedConfig& loaded,
                                                     const Environment& environment);
  ~PrivateProxy();
  PrivateProxy(const PrivateProxy&) = delete;
  PrivateProxy& operator=(const PrivateProxy&) = delete;

  const std::string& address() const { return address_; }

 private:
  PrivateProxy(pid_t process, std::string address)
      : process_(process), address_(std::move(address)) {}

  const pid_t process_;
  const std::string address_;
};

}  // namespace sluice
