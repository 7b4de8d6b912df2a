// Posts alerts to an address by libcurl: straight, whatever proxy the environment names; verified
// against the system's CAs; no redirects. Its address is a secret and shown nowhere.
#pragma once

#include <memory>
#include <string>

#include "policy/result.h"
#include "proxy/alerts/receiver.h"

namespace sluice {

struct WebhookOptions {
  std::string url;
  std::string extra_ca;  // PEM; empty: none
  Duration timeout = 10s;
  std::string machine;
};

class Webhook final : public AlertReceiver {
 public:
  // Before other threads start: libcurl is set up once. An extra_ca that cannot be used is an
  // error.
  static Result<std::unique_ptr<Webhook>> make(WebhookOptions options);

  std::string name() const override { return "webhook"; }
  Delivery deliver(const AlertMessage& message, UtcTime now,
                   const std::atomic<bool>& ending) override;

 private:
  explicit Webhook(WebhookOptions options);

  const WebhookOptions options_;
  const std::string shown_;
};

}  // namespace sluice
