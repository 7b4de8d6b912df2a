// What only a running daemon knows of keys: how many requests are on their way or wait. Asked once,
// with little patience: a daemon that hangs must not keep anybody from seeing what is stored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace sluice {

class DaemonView {
 public:
  struct Busy {
    std::uint64_t in_flight = 0, held = 0;
  };

  explicit DaemonView(const std::string& state_directory);

  // None: no daemon says so.
  std::optional<Busy> of(const std::string& key) const;

 private:
  bool answers_ = false;
  std::map<std::string, Busy> busy_;
};

}  // namespace sluice
