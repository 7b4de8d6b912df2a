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
  bool has_ended();  // by itself, which it should not
  void end();        // and what it has counted is in the store

 private:
  PrivateProxy(pid_t process, std::string address)
      : process_(process), address_(std::move(address)) {}

  pid_t process_;  // -1: it has ended
  const std::string address_;
};

}  // namespace sluice
