#include "proxy/cli/check.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

#include "policy/inside_needs.h"
#include "policy/policy_set.h"
#include "proxy/cli/commands.h"
#include "proxy/policy_dir.h"
#include "proxy/tls/origin_side.h"

namespace sluice {
namespace {

struct Tally {
  std::size_t configurations = 0, policies = 0;
  Diagnostics problems;
  std::vector<std::string> warnings;

  void append(const Diagnostics& more) {
    problems.insert(problems.end(), more.begin(), more.end());
  }
};

std::string counted(std::size_t n, const char* one, const char* many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

// By its name, or else by what is in it: a policy has hosts, and none of these sections.
bool is_configuration(const std::string& file) {
  if (std::filesystem::path(file).filename() == "sluice.toml") return true;
  const Result<std::string> text = read_text_file(file);
  if (!text) return false;
  TomlDocument document({file, *text});
  const TomlTable root = document.root();
  constexpr std::string_view sections[] = {"proxy",   "access", "store",   "tls",
                                           "log",     "jobs",   "admin",   "budget",
                                           "anomaly", "alerts", "defaults"};
  return !root.has("hosts") && std::any_of(std::begin(sections), std::end(sections),
                                           [&](std::string_view name) { return root.has(name); });
}

int conclude(const Tally& tally, std::ostream& out) {
  for (const std::string& warning : tally.warnings) out << warning << "\n";
  std::set<std::string> files;
  for (const Diagnostic& problem : tally.problems) {
    out << render(problem);
    files.insert(problem.file);
  }
  if (!tally.problems.empty()) {
    out << counted(tally.problems.size(), "error", "errors") << " in "
        << counted(files.size(), "file", "files") << "\n";
    return 2;
  }
  out << "ok: " << counted(tally.configurations, "configuration", "configurations") << ", "
      << counted(tally.policies, "policy", "policies") << "\n";
  return 0;
}

// A policy that hardly does what it says.
std::optional<std::string> blindness(const std::string& file, const Policy& policy,
                                     const TlsConfig& tls) {
  const bool looks =
      tls.intercept == "all" ? policy.intercept.value_or(true) : policy.intercept.value_or(false);
  if ((looks && tls.intercept != "never") || policy.upgrade) return std::nullopt;
  std::string names;
  for (const std::string& name : inside_needs(policy))
    names.append(names.empty() ? "" : ", ").append(name);
  if (names.empty()) return std::nullopt;
  return file + ": warning: of HTTPS only the CONNECT is seen, because " +
         (tls.intercept == "never" ? "tls.intercept is \"never\"" : "intercept is false") +
         "; there, this does not do what it says: " + names;
}

// The files that it names must be there, and be what they should be. A complaint starts with its
// key.
Diagnostics unusable_files(const std::string& text, const PolicyFile& read) {
  const Policy& policy = read.policy;
  const TlsIdentity identity{policy.extra_ca, policy.client_cert, policy.client_key};
  if (identity == TlsIdentity{}) return {};
  const auto usable = OriginSide("").context(identity);
  if (usable) return {};
  TomlDocument document({read.file, text});
  document.root().complain(usable.error().substr(0, usable.error().find(' ')), usable.error());
  return std::move(document.problems());
}

void check_policies(const std::vector<std::string>& files, const Policy& base, const TlsConfig& tls,
                    Tally& tally) {
  PolicySet set(base);
  for (const std::string& file : files) {
    ++tally.policies;
    const Result<std::string> text = read_text_file(file);
    if (!text) {
      tally.problems.push_back({{file, 1, 1, ""}, text.error()});
      continue;
    }
    const PolicyReading reading = read_policy(*text, file, base);
    tally.append(reading.problems);
    if (!reading.problems.empty()) continue;
    tally.append(set.add(reading.read));
    tally.append(unusable_files(*text, reading.read));
    if (auto blind = blindness(file, reading.read.policy, tls)) tally.warnings.push_back(*blind);
  }
}

// The files of a directory, or the file itself.
std::vector<std::string> expand(const std::string& path, Tally& tally) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {path};
  Result<std::vector<std::string>> files = policy_files(path);
  if (files) return std::move(*files);
  tally.problems.push_back({{path, 1, 1, ""}, files.error()});
  return {};
}

}  // namespace

int check_command(const std::vector<std::string>& files, const ConfigFlags& flags,
                  const Environment& environment, std::ostream& out) {
  Tally tally;
  ConfigFlags chosen = flags;
  std::vector<std::string> policies;
  for (const std::string& path : files) {
    for (const std::string& file : expand(path, tally)) {
      if (is_configuration(file)) {
        // The last one is the base of the policies, as if by --config; each is checked.
        if (chosen.config && *chosen.config != file) {
          ++tally.configurations;
          tally.append(load_config(chosen, environment).problems);
        }
        chosen.config = file;
      } else {
        policies.push_back(file);
      }
    }
  }
  const LoadedConfig loaded = load_config(chosen, environment);
  tally.append(loaded.problems);
  if (!loaded.file.empty()) ++tally.configurations;
  if (const auto usable = OriginSide(loaded.config.tls.extra_ca).context({}); !usable) {
    const std::string place = loaded.file.empty() ? "configuration" : loaded.file;
    tally.problems.push_back({{place, 1, 1, ""}, "tls." + usable.error()});
  }
  for (std::string& exposed : exposed_secrets(loaded)) tally.warnings.push_back(std::move(exposed));
  if (files.empty() && !loaded.policies_dir.empty()) {
    policies = expand(loaded.policies_dir, tally);
  }
  check_policies(policies, loaded.base, loaded.config.tls, tally);
  return conclude(tally, out);
}

void add_check_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "check", "validate configuration and policies, and start nothing",
                  "  sluice check\n"
                  "  sluice check policies/github.toml\n"
                  "  sluice check --config ./sluice.toml ./policies\n");
  add_config_flags(*command, line.flags);
  auto files = std::make_shared<std::vector<std::string>>();
  command->add_option("files", *files, "sluice.toml, policies, or directories of policies")
      ->type_name("FILE");
  command->callback([&line, files] {
    line.chosen = [&line, files] {
      return check_command(*files, line.flags, line.environment, std::cout);
    };
  });
}

}  // namespace sluice
