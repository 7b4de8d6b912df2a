// Tells a command of the operator's: run by /bin/sh in a session of its own, with the alert as JSON
// on its standard input and in SLUICE_ALERT_*. It inherits no descriptor, no proxy settings and no
// blocked signal, and all of its processes are killed when it takes too long.
#pragma once

#include <string>

#include "proxy/alerts/receiver.h"

namespace sluice {

struct AlertCommandOptions {
  std::string command;
  Duration timeout = 10s;
  std::string machine;
};

class AlertCommand final : public AlertReceiver {
 public:
  explicit AlertCommand(AlertCommandOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "command"; }
  // Taken when it ends with 0; else it is asked again later.
  Delivery deliver(const AlertMessage& message, UtcTime now,
                   const std::atomic<bool>& ending) override;

 private:
  const AlertCommandOptions options_;
};

}  // namespace sluice
