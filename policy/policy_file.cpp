#include "policy/policy_file.h"

#include <algorithm>
#include <set>

#include "policy/host_pattern.h"
#include "policy/path_pattern.h"
#include "policy/rules_reader.h"

namespace sluice {
namespace {

// More than anybody writes by hand, few enough that a match stays cheap.
constexpr std::size_t kMostHosts = 1000, kMostPaths = 100, kMostRoles = 100;

std::string check_path(std::string_view pattern) {
  if (pattern.empty()) return "a path pattern is empty";
  if (pattern.size() > kLongestPathPattern) return "a path pattern is longer than 256 characters";
  if (pattern.front() != '/' && pattern.front() != '*') {
    return "\"" + std::string(pattern) + "\" must start with '/' or '*'";
  }
  if (pattern.find_first_of("?#") != std::string_view::npos) {
    return "\"" + std::string(pattern) + "\" must not hold '?' or '#': a query is never looked at";
  }
  for (char c : pattern) {
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      return "a path pattern holds printable ASCII only, the rest as %XX";
    }
  }
  return {};
}

void read_paths(const TomlTable& table, std::vector<std::string>& paths) {
  if (!table.has("paths")) return;
  std::vector<std::string> read;
  const std::size_t before = table.problem_count();
  table.read("paths", read, check_path);
  const bool wrong = table.problem_count() != before;
  if (read.empty() && !wrong) table.complain("paths", "paths must name at least one path pattern");
  if (read.size() > kMostPaths) table.complain("paths", "paths must not hold more than 100 items");
  std::replace(read.begin(), read.end(), std::string("*"), std::string("/*"));  // one spelling
  if (std::set<std::string>(read.begin(), read.end()).size() != read.size()) {
    table.complain("paths", "paths has one pattern twice");
  }
  paths = std::move(read);
}

void read_hosts(const TomlTable& root, PolicyFile& out) {
  if (!root.has("hosts")) {
    root.complain("hosts", "hosts is missing: a policy says which hosts it is for");
    return;
  }
  std::set<HostPattern> seen;
  std::vector<std::string> written;
  const std::size_t before = root.problem_count();
  root.read("hosts", written, [&](std::string_view text) -> std::string {
    const Result<HostPattern> pattern = parse_host_pattern(text);
    if (!pattern) return "\"" + std::string(text) + "\": " + pattern.error();
    if (!seen.insert(*pattern).second) return "\"" + std::string(text) + "\" is listed twice";
    out.policy.hosts.push_back(to_string(*pattern));
    return {};
  });
  const bool wrong = root.problem_count() != before;
  if (written.empty() && !wrong) root.complain("hosts", "hosts must name at least one host");
  if (written.size() > kMostHosts)
    root.complain("hosts", "hosts must not hold more than 1000 items");
  out.hosts = root.item_places("hosts");
}

void read_roles(const TomlTable& root, Policy& policy) {
  for (const auto& [name, table] : root.named_tables("roles")) {
    Role role{name, {}, policy.rules};
    if (policy.roles.size() == kMostRoles) {
      root.complain("roles", "roles must not hold more than 100 items");
      return;
    }
    if (!is_short_token(name)) {
      root.complain("roles", "a role's name holds letters, digits and '-_.' only");
    }
    if (!table.has("paths")) {
      table.complain("paths",
                     table.path() + ".paths is missing: a role says which paths it is for");
    }
    read_paths(table, role.paths);
    read_rules(table, role.rules);
    policy.roles.push_back(std::move(role));
  }
}

}  // namespace

void read_base_policy(const TomlTable& table, Policy& policy) {
  table.read_choice<Scope>(
      "scope", policy.scope,
      {{"host", Scope::host}, {"policy", Scope::policy}, {"credential", Scope::credential}});
  table.read("credential_headers", policy.credential_headers, [](std::string_view name) {
    return is_short_token(name) ? std::string()
                                : "\"" + std::string(name) + "\" is not a header name";
  });
  for (std::string& name : policy.credential_headers) name = lower_case(name);
  if (policy.scope == Scope::credential && policy.credential_headers.empty()) {
    table.complain("credential_headers",
                   "credential_headers must not be empty when scope is \"credential\"");
  }
  bool intercept = false;
  table.read("intercept", intercept);
  if (table.has("intercept")) policy.intercept = intercept;
  table.read("upgrade", policy.upgrade);
  table.read("extra_ca", policy.extra_ca);
  table.read("client_cert", policy.client_cert);
  table.read("client_key", policy.client_key);
  if (policy.client_cert.empty() != policy.client_key.empty()) {
    const char* given = policy.client_key.empty() ? "client_cert" : "client_key";
    table.complain(given, "client_cert and client_key go together: one of them is missing");
  }
  read_rules(table, policy.rules);
}

PolicyReading read_policy(std::string_view text, const std::string& file, const Policy& base) {
  PolicyReading out;
  out.read.file = file;
  out.read.policy = base;
  Policy& policy = out.read.policy;
  policy.name = policy_name(file);
  policy.hosts.clear();
  policy.roles.clear();

  TomlDocument document({file, std::string(text.substr(0, kLargestToml + 1))});
  if (document.is_toml()) {
    const TomlTable root = document.root();
    read_hosts(root, out.read);
    read_paths(root, policy.paths);
    read_base_policy(root, policy);
    read_roles(root, policy);
    document.finish();
  }
  out.problems = std::move(document.problems());
  return out;
}

std::string policy_name(std::string_view file) {
  file = file.substr(file.rfind('/') + 1);
  constexpr std::string_view kEnding = ".toml";
  if (file.size() > kEnding.size() && file.substr(file.size() - kEnding.size()) == kEnding) {
    file.remove_suffix(kEnding.size());
  }
  return std::string(file);
}

}  // namespace sluice
