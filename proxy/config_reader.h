// From files, environment and command line to one Config: built-in defaults < sluice.toml <
// SLUICE_SECTION_KEY < --set section.key=VALUE < the named flags. Also says where everything lives.
// Runs before any thread exists; the environment is passed in, never read here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/diagnostic.h"
#include "policy/policy.h"
#include "policy/result.h"
#include "proxy/config.h"

namespace sluice {

struct Environment {
  std::map<std::string, std::string> variables;
  bool root = false;  // a system service rather than somebody's own

  std::string get(const std::string& name) const;  // empty when unset
};

// What the command line said; unset means not given.
struct ConfigFlags {
  std::optional<std::string> config, policies, state_dir, listen, admin;
  std::vector<std::string> set;  // "section.key=VALUE"
};

struct LoadedConfig {
  Config config;
  Policy base;               // [defaults]
  std::string file;          // empty: there is none
  std::string policies_dir;  // empty: there is none
  std::string state_dir;
  Diagnostics problems;  // not empty: nothing above may be used
};

LoadedConfig load_config(const ConfigFlags& flags, const Environment& environment);

// Warnings of what everybody on this machine can read: the webhook in the file, the key of a CA.
std::vector<std::string> exposed_secrets(const LoadedConfig& loaded);

// A configuration file's text over the built-in defaults, for checking it alone.
LoadedConfig read_config_text(std::string_view text, const std::string& file);

// The whole file, at most 1 MiB.
Result<std::string> read_text_file(const std::string& path);

// Every variable that sets something, "SLUICE_PROXY_WORKERS" -> "proxy.workers".
std::map<std::string, std::string> setting_variables();

}  // namespace sluice
