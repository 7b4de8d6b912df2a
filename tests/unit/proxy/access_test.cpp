#include "proxy/access.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace sluice;
using Kind = Verdict::Kind;

namespace {

AccessRules rules_for(const AccessConfig& config, std::vector<Address> own = {}) {
  auto rules = AccessRules::make(config, std::move(own), [] {
    return std::vector<Address>{*parse_ip("192.0.2.7"), *parse_ip("2001:db8::7")};
  });
  REQUIRE(rules);
  return *rules;
}

AccessConfig denying(std::vector<std::string> deny) {
  AccessConfig config;
  config.deny = std::move(deny);
  return config;
}

}  // namespace

TEST_CASE("access: which clients may come in") {
  AccessConfig config;
  CHECK(rules_for(config).client_allowed(*parse_address("127.0.0.1:5000")));
  CHECK(rules_for(config).client_allowed(*parse_address("[::1]:5000")));
  CHECK_FALSE(rules_for(config).client_allowed(*parse_address("192.168.0.9:5000")));

  config.clients = {"192.168.0.0/24"};
  config.clients_given = true;
  CHECK(rules_for(config).client_allowed(*parse_address("192.168.0.9:5000")));
  CHECK(rules_for(config).client_allowed(*parse_address("[::ffff:192.168.0.9]:5000")));
  CHECK_FALSE(rules_for(config).client_allowed(*parse_address("127.0.0.1:5000")));
  CHECK_FALSE(rules_for(config).client_allowed(Address{}));

  SUBCASE("users alone open the door to all addresses; users and clients keep both locks") {
    config.users = "users";
    CHECK_FALSE(rules_for(config).client_allowed(*parse_address("10.0.0.1:5000")));
    config.clients_given = false;
    CHECK(rules_for(config).client_allowed(*parse_address("10.0.0.1:5000")));
  }
}

TEST_CASE("access: destinations without any configuration") {
  struct Row {
    const char* to;
    Kind kind;
    const char* why;
  };
  const Row rows[] = {
      {"93.184.216.34:80", Kind::allowed, ""},
      {"10.0.0.1:80", Kind::allowed, ""},
      {"127.0.0.1:80", Kind::allowed, ""},
      {"[::1]:80", Kind::allowed, ""},
      {"[64:ff9b::5db8:d822]:80", Kind::allowed, ""},
      {"169.254.169.254:80", Kind::denied,
       "169.254.169.254 is a cloud metadata address, which is never proxied"},
      {"[::ffff:169.254.169.254]:80", Kind::denied,
       "169.254.169.254 is a cloud metadata address, which is never proxied"},
      {"[fd00:ec2::254]:80", Kind::denied,
       "fd00:ec2::254 is a cloud metadata address, which is never proxied"},
      {"169.254.1.1:80", Kind::denied,
       "169.254.1.1 is a link-local address, which is never proxied"},
      {"[fe80::1]:80", Kind::denied, "fe80::1 is a link-local address, which is never proxied"},
      {"239.1.1.1:80", Kind::denied,
       "239.1.1.1 is a multicast or broadcast address, which is never proxied"},
      {"0.0.0.0:80", Kind::denied, "0.0.0.0 is an unspecified address, which is never proxied"},
      {"[::]:80", Kind::denied, ":: is an unspecified address, which is never proxied"},
      {"[64:ff9b::a9fe:a9fe]:80", Kind::denied,
       "64:ff9b::a9fe:a9fe leads to an IPv4 address: 169.254.169.254 is a cloud metadata address, "
       "which is never proxied"},
      {"[2002:7f00:1::1]:80", Kind::denied,
       "2002:7f00:1::1 leads to an IPv4 address: 127.0.0.1 is a loopback address"},
  };
  const AccessRules rules = rules_for({});
  for (const Row& r : rows) {
    CAPTURE(r.to);
    const Verdict verdict = rules.destination(*parse_address(r.to));
    CHECK(verdict.kind == r.kind);
    CHECK(verdict.why == r.why);
  }
  CHECK_FALSE(rules.destination(Address{}));
}

TEST_CASE("access: the proxy does not call itself") {
  struct Row {
    const char *listen, *to;
    Kind kind;
  };
  const Row rows[] = {
      {"127.0.0.1:7878", "127.0.0.1:7878", Kind::self},
      {"127.0.0.1:7878", "127.0.0.1:7879", Kind::allowed},
      {"127.0.0.1:7878", "127.0.0.2:7878", Kind::allowed},
      {"127.0.0.1:7878", "[::ffff:127.0.0.1]:7878", Kind::self},
      {"0.0.0.0:7878", "127.0.0.9:7878", Kind::self},
      {"0.0.0.0:7878", "192.0.2.7:7878", Kind::self},
      {"0.0.0.0:7878", "192.0.2.8:7878", Kind::allowed},
      {"0.0.0.0:7878", "192.0.2.7:80", Kind::allowed},
      {"0.0.0.0:7878", "0.0.0.0:7878", Kind::self},
      {"[::]:7878", "192.0.2.7:7878", Kind::self},
      {"[::]:7878", "[2001:db8::7]:7878", Kind::self},
      {"[::]:7878", "[2002:c000:207::]:7878", Kind::self},  // 6to4 of 192.0.2.7
      {"192.0.2.7:7878", "127.0.0.1:7878", Kind::allowed},
  };
  for (const Row& r : rows) {
    CAPTURE(r.listen);
    CAPTURE(r.to);
    CHECK(rules_for({}, {*parse_address(r.listen)}).destination(*parse_address(r.to)).kind ==
          r.kind);
  }
  CHECK(rules_for({}, {*parse_address("[::]:1")}).destination(*parse_address("[::1]:1")).why ==
        "[::1]:1 is this proxy itself");
}

TEST_CASE("access: this machine has its loopback address") {
  const auto found = interface_addresses();
  CHECK(std::find(found.begin(), found.end(), *parse_ip("127.0.0.1")) != found.end());
}

TEST_CASE("access: ranges and private addresses denied by configuration") {
  const AccessRules rules = rules_for(denying({"private", "93.184.0.0/16", "2001:db8::1"}));
  struct Row {
    const char *to, *why;
  };
  const Row rows[] = {
      {"10.0.0.1:80", "10.0.0.1 is a private address, denied by access.deny"},
      {"[fc00::1]:80", "fc00::1 is a private address, denied by access.deny"},
      {"93.184.216.34:80", "93.184.216.34 is denied by access.deny (93.184.0.0/16)"},
      {"[2001:db8::1]:80", "2001:db8::1 is denied by access.deny (2001:db8::1/128)"},
      {"[64:ff9b::a00:1]:80",
       "64:ff9b::a00:1 leads to an IPv4 address: 10.0.0.1 is a private address, denied by "
       "access.deny"},
      {"8.8.8.8:80", ""},
      {"127.0.0.1:80", ""},
  };
  for (const Row& r : rows) {
    CAPTURE(r.to);
    CHECK(rules.destination(*parse_address(r.to)).why == r.why);
  }
}

TEST_CASE("access: names denied before they are resolved") {
  const AccessRules rules = rules_for(denying({"*.Internal", "secret.example."}));
  struct Row {
    const char *name, *why;
  };
  const Row rows[] = {
      {"a.internal", "a.internal is denied by access.deny (*.internal)"},
      {"A.B.INTERNAL.", "a.b.internal is denied by access.deny (*.internal)"},
      {"Secret.Example", "secret.example is denied by access.deny"},
      {"internal", ""},
      {"ainternal", ""},
      {"a.internal.com", ""},
      {"x.secret.example", ""},
      {"10.0.0.1", ""},
      {"", ""},
  };
  for (const Row& r : rows) {
    CAPTURE(r.name);
    CHECK(rules.host(r.name).why == r.why);
    CHECK(bool(rules.host(r.name)) == std::string(r.why).empty());
  }
}

TEST_CASE("access: configuration that makes no sense is refused with the setting's name") {
  const auto deny_error = [](const char* text) {
    return AccessRules::make(denying({text}), {}).error();
  };
  CHECK(deny_error("10.0.0.0/33") ==
        "access.deny: \"10.0.0.0/33\" is not an address or a range such as 10.0.0.0/8");
  CHECK(deny_error("10.0.0") ==
        "access.deny: \"10.0.0\" is not a range, a host name, a pattern such as *.internal, or "
        "\"private\"");
  for (const char* text : {"", "*", "*.", "a.*.b", "**.a", "a b"}) {
    CAPTURE(text);
    CHECK_FALSE(AccessRules::make(denying({text}), {}));
  }
  AccessConfig config;
  config.clients = {"everybody"};
  CHECK(AccessRules::make(config, {}).error() ==
        "access.clients: \"everybody\" is not an address or a range such as 10.0.0.0/8");
}

TEST_CASE("access: an open proxy does not start") {
  struct Row {
    const char* listen;
    bool clients, users;
    const char* problem;
  };
  const char* open =
      "proxy.listen: 0.0.0.0:7878 can be reached from other machines: say who may use the proxy "
      "with access.clients or access.users";
  const Row rows[] = {
      {"127.0.0.1:7878", false, false, ""},
      {"[::1]:7878", false, false, ""},
      {"0.0.0.0:7878", false, false, open},
      {"0.0.0.0:7878", true, false, ""},
      {"0.0.0.0:7878", false, true, ""},
      {"here", false, false, "proxy.listen: \"here\" is not an address with a port"},
  };
  for (const Row& r : rows) {
    CAPTURE(r.listen);
    Config config;
    config.proxy.listen = {"127.0.0.1:1", r.listen};
    config.access.clients_given = r.clients;
    config.access.users = r.users ? "users" : "";
    CHECK(open_proxy_problem(config).value_or("") == r.problem);
  }
}
