#include "proxy/config_sections.h"

#include <algorithm>
#include <optional>

#include "policy/host_pattern.h"
#include "policy/policy_file.h"
#include "proxy/alerts/webhook_url.h"
#include "proxy/config_anomaly.h"
#include "proxy/net/address.h"
#include "proxy/net/cidr.h"
#include "proxy/net/host_name.h"
#include "proxy/zone_file.h"

namespace sluice {
namespace {

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string check_listen(std::string_view text) {
  if (parse_address(text)) return {};
  return in_quotes(text) +
         " is not an address and a port, such as \"127.0.0.1:7878\" or \"[::1]:7878\"";
}

std::string check_client(std::string_view text) {
  const Result<Cidr> range = parse_cidr(text);
  return range ? std::string() : range.error();
}

std::string check_denied(std::string_view text) {
  if (text == "private" || parse_cidr(text)) return {};
  if (text.find('/') != std::string_view::npos) return check_client(text);
  if (HostName::parse(text.substr(text.starts_with("*.") ? 2 : 0))) return {};
  return in_quotes(text) +
         " is not a range, a host name, a pattern such as \"*.internal\", or \"private\"";
}

// "443", "20000-29999", "*"
std::optional<PortRange> parse_port_range(std::string_view text) {
  if (text == "*") return PortRange{1, 65535};
  const std::size_t dash = text.find('-');
  const auto first = parse_port(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_port(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *last < *first) return std::nullopt;
  return PortRange{*first, *last};
}

void read_ports(const TomlTable& proxy, std::vector<PortRange>& out) {
  if (!proxy.has("connect_ports")) return;
  std::vector<PortRange> ranges;
  std::vector<std::string> written;
  proxy.read_words("connect_ports", written, [&](std::string_view text) -> std::string {
    const auto range = parse_port_range(text);
    if (!range)
      return in_quotes(text) + " is not a port, a range such as \"20000-29999\", or \"*\"";
    ranges.push_back(*range);
    return {};
  });
  out = std::move(ranges);
}

void read_resolve(const TomlTable& proxy, std::map<std::string, std::string>& out) {
  if (!proxy.has("resolve")) return;
  std::map<std::string, std::string> written;
  proxy.read("resolve", written);
  out.clear();
  for (const auto& [name, address] : written) {
    const auto host = HostName::parse(name);
    if (!host)
      proxy.complain("resolve", "proxy.resolve: " + in_quotes(name) + " is not a host name");
    if (!parse_ip(address)) {
      proxy.complain("resolve", "proxy.resolve: " + in_quotes(address) + " is not an IP address");
    }
    if (host) out[std::string(host->view())] = address;
  }
}

void read_proxy(const TomlTable& proxy, ProxyConfig& config) {
  const std::size_t before = proxy.problem_count();
  proxy.read("listen", config.listen, check_listen);
  if (config.listen.empty() && proxy.problem_count() == before) {
    proxy.complain("listen", "proxy.listen must name at least one address");
  }
  proxy.read_count("workers", config.workers, 0u, 1024u);
  proxy.read_count<std::size_t>("max_clients", config.max_clients, 1, 10000000);
  proxy.read_size<std::size_t>("head_limit", config.head_limit, 1024, 16u << 20);
  read_ports(proxy, config.connect_ports);
  proxy.read("drain", config.drain);
  read_resolve(proxy, config.resolve);
  const TomlTable timeouts = proxy.table("timeouts");
  timeouts.read("head", config.timeouts.head, 1ms);
  timeouts.read("idle", config.timeouts.idle, 1ms);
  timeouts.read("connect", config.timeouts.connect, 1ms);
  timeouts.read("first_byte", config.timeouts.first_byte, 1ms);
  timeouts.read("transfer_idle", config.timeouts.transfer_idle, 1ms);
}

void read_access(const TomlTable& access, AccessConfig& config) {
  access.read("clients", config.clients, check_client);
  config.clients_given = config.clients_given || access.has("clients");
  access.read("users", config.users);
  access.read("deny", config.deny, check_denied);
}

void read_admin(const TomlTable& admin, AdminConfig& config) {
  admin.read("listen", config.listen);
  if (config.listen == "off" || !admin.has("listen")) return;
  if (const std::string wrong = check_listen(config.listen); !wrong.empty()) {
    admin.complain("listen", "admin.listen: " + wrong + ", or \"off\"");
  }
}

using Words = std::vector<std::pair<std::string_view, std::string>>;

void read_word(const TomlTable& table, std::string_view key, std::string& out,
               std::initializer_list<std::string_view> words) {
  Words choices;
  for (std::string_view word : words) choices.emplace_back(word, std::string(word));
  table.read_choice<std::string>(key, out, choices);
}

void read_store(const TomlTable& store, StoreConfig& config) {
  store.read("url", config.url);
  if (store.has("url") && !config.url.starts_with("lmdb:")) {
    store.complain("url", "store.url: " + in_quotes(config.url) +
                              " is not known; \"lmdb:\" or \"lmdb:DIRECTORY\" is");
  }
  read_word(store, "on_failure", config.on_failure, {"block", "local"});
}

void read_tls(const TomlTable& tls, TlsConfig& config) {
  read_word(tls, "intercept", config.intercept, {"listed", "all", "never"});
  tls.read("ca_cert", config.ca_cert);
  tls.read("ca_key", config.ca_key);
  tls.read("extra_ca", config.extra_ca);
}

void read_log(const TomlTable& log, LogConfig& config) {
  read_word(log, "level", config.level, {"trace", "debug", "info", "warn", "error", "off"});
  read_word(log, "format", config.format, {"text", "json"});
  log.read("access", config.access);
  if (config.access.empty()) log.complain("access", "log.access must be \"off\", \"-\" or a file");
}

void read_job_rules(const TomlTable& table, JobRules& rules) {
  constexpr unsigned kMany = 1000000;
  table.read_count<std::uint64_t>("max_requests", rules.max_requests, 0, 1000000000);
  table.read_count("max_concurrency", rules.max_concurrency, 0u, kMany);
  table.read_count("fail_after", rules.fail_after, 0u, kMany);
  table.read("restart_after", rules.restart_after, 1s);
}

void read_jobs(const TomlTable& jobs, JobsConfig& config) {
  read_job_rules(jobs, config.every);
  for (const auto& [name, table] : jobs.named_tables("named")) {
    JobRules& rules = config.named.try_emplace(name, config.every).first->second;
    read_job_rules(table, rules);
  }
}

// A limit that is too small to count must not pass for none.
void read_money(const TomlTable& table, std::string_view key, double& out) {
  constexpr double kMostMoney = 1e9;
  constexpr double kLeastMoney = 1e-6;
  table.read(key, out, 0.0, kMostMoney);
  if (out > 0 && out < kLeastMoney && table.has(key)) {
    table.complain(key,
                   dotted(table.path(), key) + " must be 0, for no limit, or at least 0.000001");
  }
}

void read_budget(const TomlTable& budget, BudgetConfig& config) {
  read_money(budget, "daily", config.daily);
  read_money(budget, "monthly", config.monthly);
  budget.read("currency", config.currency);
  if (config.currency.empty() || config.currency.size() > 8) {
    budget.complain("currency", "budget.currency must be a short name, such as \"EUR\"");
  }
  std::string reset;
  budget.read("reset", reset);
  if (budget.has("reset")) {
    const auto time = parse_time_of_day(reset);
    if (!time || *time == 24h)
      budget.complain("reset", "budget.reset must be a time of day, such as \"06:30\"");
    else
      config.reset = *time;
  }
  budget.read("zone", config.zone);
  if (const auto zone = load_zone(config.zone); !zone) {
    budget.complain("zone", "budget.zone: " + zone.error());
  }
  budget.read("alert_at", config.alert_at, 0.0, 1.0);
  budget.read("stop_at", config.stop_at, 0.0, 1.0);
  if (config.stop_at < config.alert_at) {
    budget.complain("stop_at", "budget.stop_at must not be less than alert_at");
  }
}

void read_alerts(const TomlTable& alerts, AlertsConfig& config) {
  alerts.read("webhook", config.webhook);
  const std::string wrong = webhook_problem(config.webhook);
  if (alerts.has("webhook") && !wrong.empty()) {
    alerts.complain("webhook", "alerts.webhook: " + wrong);
  }
  alerts.read("extra_ca", config.extra_ca);
  alerts.read("command", config.command);
  alerts.read("kinds", config.kinds, [](std::string_view kind) -> std::string {
    const std::vector<std::string> known = AlertsConfig{}.kinds;
    if (std::find(known.begin(), known.end(), kind) != known.end()) return {};
    return in_quotes(kind) + " is not one of " +
           one_of(std::vector<std::string_view>(known.begin(), known.end()));
  });
  alerts.read("slow_open", config.slow_open, 1s);
  alerts.read("repeat", config.repeat);
  alerts.read_count("max_per_hour", config.max_per_hour, 1u, 100000u);
  alerts.read("give_up", config.give_up, 1s);
  alerts.read("timeout", config.timeout, 100ms);
  if (config.timeout > kLongestAlertTry && alerts.has("timeout")) {
    alerts.complain("timeout", "alerts.timeout must not be longer than 12s");
  }
  if (config.give_up <= config.repeat && (alerts.has("give_up") || alerts.has("repeat"))) {
    alerts.complain("give_up", "alerts.give_up must be longer than repeat");
  }
}

}  // namespace

void read_sections(TomlDocument& document, Config& config, Policy& base) {
  if (!document.is_toml()) return;
  const TomlTable root = document.root();
  read_proxy(root.table("proxy"), config.proxy);
  read_access(root.table("access"), config.access);
  read_admin(root.table("admin"), config.admin);
  read_store(root.table("store"), config.store);
  read_tls(root.table("tls"), config.tls);
  read_log(root.table("log"), config.log);
  read_jobs(root.table("jobs"), config.jobs);
  read_budget(root.table("budget"), config.budget);
  read_anomaly(root.table("anomaly"), config.anomaly);
  read_alerts(root.table("alerts"), config.alerts);
  read_base_policy(root.table("defaults"), base);
  document.finish();
}

}  // namespace sluice
