#include "proxy/config_reader.h"

#include <doctest/doctest.h>

#include <string>

#include "unit/proxy/folder.h"

using namespace sluice;
using sluice::test::Folder;

namespace {

std::string shown(const Diagnostics& problems) {
  std::string out;
  for (const Diagnostic& problem : problems) out += render(problem);
  return out;
}

std::string complaints(const std::string& text) {
  return shown(read_config_text(text, "sluice.toml").problems);
}

Config config(const std::string& text) {
  LoadedConfig loaded = read_config_text(text, "sluice.toml");
  REQUIRE(shown(loaded.problems) == "");
  return loaded.config;
}

LoadedConfig with_set(const std::vector<std::string>& set) {
  ConfigFlags flags;
  flags.set = set;
  return load_config(flags, {});
}

LoadedConfig with_environment(std::map<std::string, std::string> variables) {
  return load_config({}, {std::move(variables)});
}

}  // namespace

TEST_CASE("config: a budget too small to count is not taken for none") {
  for (const char* key : {"daily", "monthly"}) {
    CAPTURE(key);
    const std::string set = std::string("[budget]\n") + key + " = ";
    CHECK(complaints(set + "4e-7\n")
              .find(std::string("budget.") + key + " must be 0, for no limit") !=
          std::string::npos);
    CHECK(complaints(set + "1e-6\n") == "");
    CHECK(complaints(set + "0.0\n") == "");
  }
}

TEST_CASE("config: nothing at all is a working configuration") {
  const LoadedConfig loaded = load_config({}, {});
  CHECK(shown(loaded.problems) == "");
  CHECK(loaded.config.proxy.listen == std::vector<std::string>{"127.0.0.1:7878"});
  CHECK(loaded.config.proxy.workers == 0);
  CHECK(loaded.config.proxy.max_clients == 20000);
  CHECK(loaded.config.proxy.head_limit == 65536);
  REQUIRE(loaded.config.proxy.connect_ports.size() == 2);
  CHECK(loaded.config.proxy.connect_ports[0].first == 443);
  CHECK(loaded.config.proxy.connect_ports[1].last == 8443);
  CHECK(loaded.config.proxy.drain == 30s);
  CHECK(loaded.config.proxy.resolve.empty());
  CHECK(loaded.config.proxy.timeouts.head == 10s);
  CHECK(loaded.config.proxy.timeouts.idle == 60s);
  CHECK(loaded.config.proxy.timeouts.connect == 10s);
  CHECK(loaded.config.proxy.timeouts.first_byte == 60s);
  CHECK(loaded.config.proxy.timeouts.transfer_idle == 5min);
  CHECK(loaded.config.access.clients == std::vector<std::string>{"127.0.0.0/8", "::1"});
  CHECK_FALSE(loaded.config.access.clients_given);
  CHECK(loaded.config.access.users.empty());
  CHECK(loaded.config.access.deny.empty());
  CHECK(loaded.config.admin.listen == "127.0.0.1:7879");
  CHECK(loaded.config.store.url == "lmdb:");
  CHECK(loaded.config.store.on_failure == "block");
  CHECK(loaded.config.tls.intercept == "listed");
  CHECK(loaded.config.tls.ca_cert.empty());
  CHECK(loaded.config.log.level == "info");
  CHECK(loaded.config.log.format == "text");
  CHECK(loaded.config.log.access == "off");
  CHECK(loaded.base == Policy{});
}

TEST_CASE("config: every key of the contract") {
  const LoadedConfig loaded = read_config_text(R"(
[proxy]
listen = ["0.0.0.0:80", "[::1]:81"]
workers = 3
max_clients = 7
head_limit = "8KiB"
connect_ports = [443, "20000-29999"]
drain = "5s"
resolve = { "API.test" = "127.0.0.1", "b.test" = "::1" }
[proxy.timeouts]
head = "1s"
idle = "2s"
connect = "3s"
first_byte = "4s"
transfer_idle = "5s"
[access]
clients = ["10.0.0.0/8"]
users = "/users"
deny = ["private", "192.0.2.0/24", "*.internal", "host.test"]
[admin]
listen = "off"
[store]
url = "lmdb:/data"
on_failure = "local"
[tls]
intercept = "all"
ca_cert = "/c"
ca_key = "/k"
extra_ca = "/e"
[log]
level = "debug"
format = "json"
access = "-"
[defaults]
mode = "observe"
breaker.consecutive = 9
)",
                                               "sluice.toml");
  REQUIRE(shown(loaded.problems) == "");
  const Config& c = loaded.config;
  CHECK(c.proxy.listen == std::vector<std::string>{"0.0.0.0:80", "[::1]:81"});
  CHECK(c.proxy.workers == 3);
  CHECK(c.proxy.max_clients == 7);
  CHECK(c.proxy.head_limit == 8192);
  REQUIRE(c.proxy.connect_ports.size() == 2);
  CHECK(c.proxy.connect_ports[1].first == 20000);
  CHECK(c.proxy.connect_ports[1].last == 29999);
  CHECK(c.proxy.drain == 5s);
  CHECK(c.proxy.resolve ==
        std::map<std::string, std::string>{{"api.test", "127.0.0.1"}, {"b.test", "::1"}});
  CHECK(c.proxy.timeouts.head == 1s);
  CHECK(c.proxy.timeouts.idle == 2s);
  CHECK(c.proxy.timeouts.connect == 3s);
  CHECK(c.proxy.timeouts.first_byte == 4s);
  CHECK(c.proxy.timeouts.transfer_idle == 5s);
  CHECK(c.access.clients == std::vector<std::string>{"10.0.0.0/8"});
  CHECK(c.access.clients_given);
  CHECK(c.access.users == "/users");
  CHECK(c.access.deny.size() == 4);
  CHECK(c.admin.listen == "off");
  CHECK(c.store.url == "lmdb:/data");
  CHECK(c.store.on_failure == "local");
  CHECK(c.tls.intercept == "all");
  CHECK(c.tls.ca_cert == "/c");
  CHECK(c.tls.ca_key == "/k");
  CHECK(c.tls.extra_ca == "/e");
  CHECK(c.log.level == "debug");
  CHECK(c.log.format == "json");
  CHECK(c.log.access == "-");
  CHECK(loaded.base.rules.mode == Mode::observe);
  CHECK(loaded.base.rules.breaker.consecutive == 9);
  CHECK(config("proxy.connect_ports = ['*']").proxy.connect_ports[0].last == 65535);
}

TEST_CASE("config: built-in < file < environment < --set < flags") {
  const Folder folder;
  folder.write("sluice.toml",
               "[proxy]\nworkers = 2\nlisten = ['127.0.0.1:2']\nmax_clients = 2\n"
               "[proxy.timeouts]\nhead = '2s'\n");
  ConfigFlags flags;
  flags.config = folder.path("sluice.toml");
  Environment environment;
  CHECK(load_config(flags, environment).config.proxy.workers == 2);

  environment.variables = {{"SLUICE_PROXY_WORKERS", "3"},
                           {"SLUICE_PROXY_LISTEN", "127.0.0.1:3"},
                           {"SLUICE_PROXY_TIMEOUTS_HEAD", "3s"},
                           {"HOME", "/nowhere"}};
  LoadedConfig loaded = load_config(flags, environment);
  CHECK(shown(loaded.problems) == "");
  CHECK(loaded.config.proxy.workers == 3);
  CHECK(loaded.config.proxy.listen == std::vector<std::string>{"127.0.0.1:3"});
  CHECK(loaded.config.proxy.timeouts.head == 3s);
  CHECK(loaded.config.proxy.max_clients == 2);

  flags.set = {"proxy.workers=4", "proxy.workers=5", "proxy.listen=[\"127.0.0.1:5\"]"};
  loaded = load_config(flags, environment);
  CHECK(loaded.config.proxy.workers == 5);  // the last one counts
  CHECK(loaded.config.proxy.listen == std::vector<std::string>{"127.0.0.1:5"});

  flags.listen = "127.0.0.1:6";
  flags.admin = "off";
  loaded = load_config(flags, environment);
  CHECK(shown(loaded.problems) == "");
  CHECK(loaded.config.proxy.listen == std::vector<std::string>{"127.0.0.1:6"});
  CHECK(loaded.config.admin.listen == "off");
  CHECK(loaded.file == folder.path("sluice.toml"));
}

TEST_CASE("config: where things live") {
  const Folder home;
  Environment environment;
  environment.variables = {{"XDG_CONFIG_HOME", home.path("config")},
                           {"XDG_STATE_HOME", home.path("state")}};
  LoadedConfig loaded = load_config({}, environment);
  CHECK(loaded.file.find(home.path("")) == std::string::npos);
  CHECK(loaded.state_dir == home.path("state/sluice"));

  home.write("config/sluice/sluice.toml", "proxy.workers = 6\n");
  home.write("config/sluice/policies/a.toml", "hosts = ['a']\n");
  loaded = load_config({}, environment);
  CHECK(loaded.config.proxy.workers == 6);
  CHECK(loaded.file == home.path("config/sluice/sluice.toml"));
  CHECK(loaded.policies_dir == home.path("config/sluice/policies"));

  environment.variables["STATE_DIRECTORY"] = "/var/lib/one:/var/lib/two";
  CHECK(load_config({}, environment).state_dir == "/var/lib/one");
  ConfigFlags flags;
  flags.state_dir = "/mine";
  flags.policies = "/rules";
  loaded = load_config(flags, environment);
  CHECK(loaded.state_dir == "/mine");
  CHECK(loaded.policies_dir == "/rules");

  CHECK(load_config({}, {{{"HOME", "/home/x"}}, false}).state_dir == "/home/x/.local/state/sluice");
  CHECK(load_config({}, {{{"HOME", "/root"}}, true}).state_dir == "/var/lib/sluice");
  // XDG Base Directory: a relative path is ignored.
  CHECK(load_config({}, {{{"HOME", "/home/x"}, {"XDG_STATE_HOME", "here"}}, false}).state_dir ==
        "/home/x/.local/state/sluice");
}

TEST_CASE("config: complaints about a file, word by word") {
  struct Row {
    std::string text, complaint;
  };
  const Row rows[] = {
      {"[proxy]\nworkers = 'two'",
       "sluice.toml:2:11: proxy.workers must be a whole number, not a string\n"
       "  workers = 'two'\n"
       "            ^\n"},
      {"[proxy]\nworker = 2",
       "sluice.toml:2:1: unknown key 'worker' in [proxy]; did you mean 'workers'?\n"
       "  worker = 2\n"
       "  ^\n"},
      {"[proxi]\nworkers = 2",
       "sluice.toml:1:2: unknown key 'proxi'; did you mean 'proxy'?\n"
       "  [proxi]\n"
       "   ^\n"},
      {"[proxy]\nidle = '5s'",
       "sluice.toml:2:1: unknown key 'idle' in [proxy]; it belongs in [proxy.timeouts]\n"
       "  idle = '5s'\n"
       "  ^\n"},
      {"proxy.listen = []",
       "sluice.toml:1:16: proxy.listen must name at least one address\n"
       "  proxy.listen = []\n"
       "                 ^\n"},
      {"proxy.listen = ['localhost:80']",
       "sluice.toml:1:17: proxy.listen: \"localhost:80\" is not an address and a port, such as "
       "\"127.0.0.1:7878\" or \"[::1]:7878\"\n"
       "  proxy.listen = ['localhost:80']\n"
       "                  ^\n"},
      {"proxy.connect_ports = [443, '90-80']",
       "sluice.toml:1:29: proxy.connect_ports: \"90-80\" is not a port, a range such as "
       "\"20000-29999\", or \"*\"\n"
       "  proxy.connect_ports = [443, '90-80']\n"
       "                              ^\n"},
      {"proxy.resolve = { 'a b' = '1.2.3' }",
       "sluice.toml:1:17: proxy.resolve: \"a b\" is not a host name\n"
       "  proxy.resolve = { 'a b' = '1.2.3' }\n"
       "                  ^\n"
       "sluice.toml:1:17: proxy.resolve: \"1.2.3\" is not an IP address\n"
       "  proxy.resolve = { 'a b' = '1.2.3' }\n"
       "                  ^\n"},
      {"proxy.timeouts.head = '0s'",
       "sluice.toml:1:23: proxy.timeouts.head must be at least 1 ms\n"
       "  proxy.timeouts.head = '0s'\n"
       "                        ^\n"},
      {"proxy.head_limit = '512'",
       "sluice.toml:1:20: proxy.head_limit must be at least 1024 bytes\n"
       "  proxy.head_limit = '512'\n"
       "                     ^\n"},
      {"access.deny = ['10.0.0.0/33']",
       "sluice.toml:1:16: access.deny: \"10.0.0.0/33\" is not an address or a range such as "
       "10.0.0.0/8\n"
       "  access.deny = ['10.0.0.0/33']\n"
       "                 ^\n"},
      {"admin.listen = 'here'",
       "sluice.toml:1:16: admin.listen: \"here\" is not an address and a port, such as "
       "\"127.0.0.1:7878\" or \"[::1]:7878\", or \"off\"\n"
       "  admin.listen = 'here'\n"
       "                 ^\n"},
      {"store.on_failure = 'panic'",
       "sluice.toml:1:20: store.on_failure must be \"block\" or \"local\", not \"panic\"\n"
       "  store.on_failure = 'panic'\n"
       "                     ^\n"},
      {"log.level = 'loud'",
       "sluice.toml:1:13: log.level must be \"trace\", \"debug\", \"info\", \"warn\", \"error\" or "
       "\"off\", not \"loud\"\n"
       "  log.level = 'loud'\n"
       "              ^\n"},
      {"[defaults]\nhosts = ['a']",
       "sluice.toml:2:1: unknown key 'hosts' in [defaults]\n"
       "  hosts = ['a']\n"
       "  ^\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(complaints(row.text) == row.complaint);
  }
}

TEST_CASE("config: complaints about arguments show the argument") {
  struct Row {
    std::string set, complaint;
  };
  const Row rows[] = {
      {"proxy.workers=two",
       "--set:1:15: proxy.workers must be a whole number, not a string\n"
       "  proxy.workers=two\n"
       "                ^\n"},
      {"proxy.worker=2",
       "--set:1:7: unknown key 'worker' in [proxy]; did you mean 'workers'?\n"
       "  proxy.worker=2\n"
       "        ^\n"},
      {"workers=2",
       "--set:1:1: write section.key=VALUE, such as proxy.workers=2\n"
       "  workers=2\n"
       "  ^\n"},
      {"proxy.workers",
       "--set:1:1: write section.key=VALUE, such as proxy.workers=2\n"
       "  proxy.workers\n"
       "  ^\n"},
      {"proxy.timeouts.head=soon",
       "--set:1:21: proxy.timeouts.head: \"soon\" is not a duration: write a number and ms, s, m, "
       "h "
       "or d, such as \"90s\"\n"
       "  proxy.timeouts.head=soon\n"
       "                      ^\n"},
      {"proxy.workers=1\n2",
       "--set:1:1: proxy.workers must be one printable line\n"
       "  proxy.workers=1?2\n"
       "  ^\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.set);
    CHECK(shown(with_set({row.set}).problems) == row.complaint);
  }
  ConfigFlags flags;
  flags.listen = "here";
  CHECK(shown(load_config(flags, {}).problems) ==
        "--listen:1:10: proxy.listen: \"here\" is not an address and a port, such as "
        "\"127.0.0.1:7878\" or \"[::1]:7878\"\n"
        "  --listen here\n"
        "           ^\n");
  flags.listen = "\"x";  // quotes of its own are not TOML's
  CHECK_FALSE(load_config(flags, {}).problems.empty());
}

TEST_CASE("config: values need no quotes where there is no doubt") {
  CHECK(with_set({"log.access=/var/log/a.log"}).config.log.access == "/var/log/a.log");
  CHECK(with_set({"log.access=\"-\""}).config.log.access == "-");
  CHECK(with_set({"proxy.drain=5s"}).config.proxy.drain == 5s);
  CHECK(with_set({"access.clients=10.0.0.0/8"}).config.access.clients ==
        std::vector<std::string>{"10.0.0.0/8"});
  CHECK(with_set({"proxy.connect_ports=8443"}).config.proxy.connect_ports.size() == 1);
  CHECK(with_set({"proxy.resolve={\"a.test\"=\"127.0.0.1\"}"}).config.proxy.resolve.size() == 1);
  CHECK(with_set({"defaults.breaker.consecutive=3"}).base.rules.breaker.consecutive == 3);
}

TEST_CASE("config: complaints about the environment") {
  CHECK(
      shown(with_environment({{"SLUICE_PROXY_WORKER", "2"}}).problems) ==
      "environment:1:1: unknown variable SLUICE_PROXY_WORKER; did you mean SLUICE_PROXY_WORKERS?\n"
      "  SLUICE_PROXY_WORKER=2\n"
      "  ^\n");
  CHECK(shown(with_environment({{"SLUICE_PROXY_WORKERS", "x"}}).problems) ==
        "environment:1:22: proxy.workers must be a whole number, not a string\n"
        "  SLUICE_PROXY_WORKERS=x\n"
        "                       ^\n");
  CHECK(with_environment({{"SLUICE_TLS_INTERCEPT", "never"}}).config.tls.intercept == "never");
  const auto variables = setting_variables();
  CHECK(variables.at("SLUICE_PROXY_WORKERS") == "proxy.workers");
  CHECK(variables.at("SLUICE_PROXY_TIMEOUTS_FIRST_BYTE") == "proxy.timeouts.first_byte");
  CHECK(variables.at("SLUICE_DEFAULTS_BREAKER_CONSECUTIVE") == "defaults.breaker.consecutive");
}

TEST_CASE("config: files that cannot be read, and halves of a pair") {
  ConfigFlags flags;
  flags.config = "/nowhere/sluice.toml";
  CHECK(shown(load_config(flags, {}).problems) ==
        "/nowhere/sluice.toml:1:1: cannot be read: No such file or directory\n");
  flags.config = "/tmp";
  CHECK(shown(load_config(flags, {}).problems) == "/tmp:1:1: is a directory\n");
  CHECK(shown(with_set({"tls.ca_cert=/c"}).problems) ==
        "tls:1:1: tls.ca_cert and tls.ca_key go together: one of them is missing\n");
}

TEST_CASE("config: anomalies, each kind with an action of its own or the common one") {
  const AnomalyRules rules = config(R"(
[anomaly]
action = "open"
escalate_after = "0s"
[anomaly.burst]
above = 30
learn = "2h"
[anomaly.thrash]
enabled = false
action = "alert"
[anomaly.off_hours]
hours = ["08:00-12:00", "22:00-06:00"]
days = ["mon", "sun"]
zone = "Europe/Berlin"
)")
                                 .anomaly;
  CHECK(rules.action_of(AnomalyKind::burst) == AnomalyAction::open);
  CHECK(rules.action_of(AnomalyKind::thrash) == AnomalyAction::alert);
  CHECK(rules.escalate_after == 0s);
  CHECK(rules.burst.above == 30);
  CHECK(rules.burst.learn == 2h);
  CHECK(!rules.thrash.enabled);
  CHECK(rules.off_hours.hours == WorkingHours{{{8h, 12h}, {22h, 6h}}, 0x41, "Europe/Berlin"});
}

TEST_CASE("config: the common action comes from wherever it was said last") {
  const LoadedConfig loaded =
      with_set({"anomaly.action=throttle", "anomaly.thrash.action=open",
                "anomaly.burst.action=inherit", "anomaly.off_hours.hours=08:00-20:00"});
  CHECK(shown(loaded.problems) == "");
  const AnomalyRules& rules = loaded.config.anomaly;
  CHECK(rules.action_of(AnomalyKind::burst) == AnomalyAction::throttle);
  CHECK(rules.action_of(AnomalyKind::thrash) == AnomalyAction::open);
  CHECK(rules.off_hours.hours.ranges == std::vector<HourRange>{{8h, 20h}});
  CHECK(with_environment({{"SLUICE_ANOMALY_THRASH_ABOVE", "7"}}).config.anomaly.thrash.above == 7);
}

TEST_CASE("config: mistakes about anomalies") {
  CHECK(complaints("[anomaly]\naction = \"shout\"\n").find("\"throttle\"") != std::string::npos);
  CHECK(complaints("[anomaly.thrash]\nabov = 4\n").find("'above'") != std::string::npos);
  CHECK(complaints("[anomaly.error_spike]\nof = 100\n").find("64") != std::string::npos);
  CHECK(complaints("[anomaly.off_hours]\nhours = [\"8-20\"]\n") ==
        "sluice.toml:2:10: anomaly.off_hours.hours: \"8-20\" is no range of hours, such as "
        "\"08:00-20:00\"\n"
        "  hours = [\"8-20\"]\n"
        "           ^\n");
  CHECK(complaints("[anomaly.off_hours]\ndays = [\"monday\"]\n").find("is no day") !=
        std::string::npos);
  CHECK(complaints("[anomaly.off_hours]\nzone = \"Mars\"\n").find("is no time zone") !=
        std::string::npos);
}
