// Everything `sluice.toml` can say, each default where it is declared. A plain value: built once at
// start-up, then only read, by every thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "policy/anomaly.h"
#include "policy/job.h"
#include "policy/time.h"

namespace sluice {

struct PortRange {
  std::uint16_t first = 0, last = 0;
  bool operator==(const PortRange&) const = default;
};

struct Timeouts {
  Duration head = 10s;            // for a whole request head, from its first byte
  Duration idle = 60s;            // between requests, on either side
  Duration connect = 10s;         // name and connection together
  Duration first_byte = 60s;      // from the end of the request to the response head
  Duration transfer_idle = 5min;  // without a byte moving, in a body or a tunnel
  bool operator==(const Timeouts&) const = default;
};

struct ProxyConfig {
  std::vector<std::string> listen = {"127.0.0.1:7878"};
  unsigned workers = 0;  // 0: one per core
  std::size_t max_clients = 20000;
  std::size_t head_limit = 64 * 1024;
  std::vector<PortRange> connect_ports = {{443, 443}, {8443, 8443}};
  Duration drain = 30s;
  std::map<std::string, std::string> resolve;  // host name -> address, before DNS
  Timeouts timeouts;
  bool operator==(const ProxyConfig&) const = default;
};

struct AccessConfig {
  std::vector<std::string> clients = {"127.0.0.0/8", "::1"};
  std::string users;              // file of name:hash lines; empty: nobody is asked
  std::vector<std::string> deny;  // CIDRs, host patterns, "private"
  bool clients_given = false;     // set by the reader: `clients` was written, not defaulted
  bool operator==(const AccessConfig&) const = default;
};

struct AdminConfig {
  std::string listen = "127.0.0.1:7879";  // "off": none
  bool operator==(const AdminConfig&) const = default;
};

struct StoreConfig {
  std::string url = "lmdb:";
  std::string on_failure = "block";
  bool operator==(const StoreConfig&) const = default;
};

struct TlsConfig {
  std::string intercept = "listed";
  std::string ca_cert, ca_key, extra_ca;
  bool operator==(const TlsConfig&) const = default;
};

struct LogConfig {
  std::string level = "info";
  std::string format = "text";
  std::string access = "off";  // "off", "-" or a file
  bool operator==(const LogConfig&) const = default;
};

struct JobsConfig {
  JobRules every;                         // what holds for a job that is not named
  std::map<std::string, JobRules> named;  // [jobs.named.NAME]
  bool operator==(const JobsConfig&) const = default;
};

struct BudgetConfig {
  double daily = 0.0, monthly = 0.0;  // 0: no limit
  std::string currency = "USD";
  Duration reset = 0s;  // of the day, on the zone's clock
  std::string zone = "UTC";
  double alert_at = 0.5, stop_at = 0.8;  // shares of the limit
  bool operator==(const BudgetConfig&) const = default;
};

inline constexpr Duration kLongestAlertTry = 12s;  // alerts are promised within 30 s

struct AlertsConfig {
  std::string webhook;   // https://…; http:// to this machine only. Holds a secret: never logged
  std::string extra_ca;  // PEM file trusted for it besides the system's
  std::string command;   // run by /bin/sh
  std::vector<std::string> kinds = {"breaker-open", "slow-open", "budget",
                                    "anomaly",      "stop",      "store"};
  Duration slow_open = 15min;
  Duration repeat = 5min;
  unsigned max_per_hour = 120;
  Duration give_up = 1h;
  Duration timeout = 10s;  // for one try
  bool operator==(const AlertsConfig&) const = default;
};

struct Config {
  ProxyConfig proxy;
  AccessConfig access;
  AdminConfig admin;
  StoreConfig store;
  TlsConfig tls;
  LogConfig log;
  JobsConfig jobs;
  BudgetConfig budget;
  AnomalyRules anomaly;
  AlertsConfig alerts;
  bool operator==(const Config&) const = default;
};

}  // namespace sluice
