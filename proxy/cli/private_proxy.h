// A proxy for one command: `sluice run` on a port of its own, in another process that ends with
// this one. It shares the state directory with the daemon, if there is one.
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

  pid_t process() const { return process_; }
  bool has_ended();  // by itself, which it should not
  void end();        // and what it has counted is in the store

 private:
  explicit PrivateProxy(pid_t process) : process_(process) {}

  pid_t process_;  // -1: it has ended
};

}  // namespace sluice
