#include "proxy/config_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "policy/toml_table.h"
#include "proxy/alerts/webhook_url.h"
#include "proxy/config_sections.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "SLUICE_";

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// XDG Base Directory: a relative path is invalid and ignored.
std::string xdg_directory(const Environment& environment, const char* name, const char* in_home) {
  const std::string given = environment.get(name);
  if (given.starts_with('/')) return given + "/sluice";
  const std::string home = environment.get("HOME");
  return home.starts_with('/') ? home + in_home + "/sluice" : std::string();
}

std::vector<std::string> config_directories(const Environment& environment) {
  std::vector<std::string> out;
  const std::string own = xdg_directory(environment, "XDG_CONFIG_HOME", "/.config");
  if (!own.empty()) out.push_back(own);
  out.emplace_back("/etc/sluice");
  return out;
}

std::string find_config(const ConfigFlags& flags, const Environment& environment) {
  if (flags.config) return *flags.config;
  for (const std::string& directory : config_directories(environment)) {
    if (exists(directory + "/sluice.toml")) return directory + "/sluice.toml";
  }
  return {};
}

std::string find_policies(const ConfigFlags& flags, const Environment& environment,
                          const std::string& file) {
  if (flags.policies) return *flags.policies;
  std::vector<std::string> places;
  if (file.empty()) {
    places = config_directories(environment);
  } else {
    const std::string parent = fs::path(file).parent_path().string();
    places.push_back(parent.empty() ? "." : parent);
  }
  for (const std::string& place : places) {
    if (exists(place + "/policies")) return place + "/policies";
  }
  return {};
}

std::string find_state(const ConfigFlags& flags, const Environment& environment) {
  if (flags.state_dir) return *flags.state_dir;
  // systemd.exec(5): several directories are separated by colons.
  const std::string given = environment.get("STATE_DIRECTORY");
  if (!given.empty()) return given.substr(0, given.find(':'));
  const bool own = !environment.root || !environment.get("XDG_STATE_HOME").empty();
  const std::string xdg = xdg_directory(environment, "XDG_STATE_HOME", "/.local/state");
  return own && !xdg.empty() ? xdg : "/var/lib/sluice";
}

// TOML's own quoting; control characters were refused before.
std::string in_quotes(std::string_view value) {
  std::string out = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

struct Override {
  std::string source;  // "--set", "--listen", "environment"
  std::string shown;   // as it was written: `prefix` and the value
  std::string prefix;
  std::string key;  // dotted
  std::string value;
  bool is_text = false;  // never TOML
};

void apply(const Override& setting, LoadedConfig& out) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(setting.shown.begin(), setting.shown.end(), control)) {
    out.problems.push_back(
        {{setting.source, 1, 1, setting.shown}, setting.key + " must be one printable line"});
    return;
  }
  const int shift =
      static_cast<int>(setting.prefix.size()) - static_cast<int>(setting.key.size()) - 1;
  const auto source = [&](const std::string& value) {
    return TomlSource{setting.source, setting.key + "=" + value, setting.shown, shift, true};
  };
  std::string value = setting.value;
  // What opens a list, a table or a string is TOML, so its own errors help; other words need no
  // quotes here.
  const bool is_toml =
      !value.empty() && std::string_view("[{\"'").find(value[0]) != std::string_view::npos;
  if (setting.is_text || (!is_toml && !TomlDocument(source(value)).is_toml())) {
    value = in_quotes(value);
  }
  TomlDocument document(source(value));
  read_sections(document, out.config, out.base);
  std::move(document.problems().begin(), document.problems().end(),
            std::back_inserter(out.problems));
}

void apply_environment(const Environment& environment, LoadedConfig& out) {
  const std::map<std::string, std::string> known = setting_variables();
  for (const auto& [name, value] : environment.variables) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string shown = name + "=" + value;
    if (const auto setting = known.find(name); setting != known.end()) {
      apply({"environment", shown, name + "=", setting->second, value}, out);
      continue;
    }
    std::vector<std::string> names;
    for (const auto& [candidate, key] : known) names.push_back(candidate);
    const std::string_view near = nearest_word(name, names);
    out.problems.push_back(
        {{"environment", 1, 1, shown},
         "unknown variable " + name +
             (near.empty() ? std::string() : "; did you mean " + std::string(near) + "?")});
  }
}

void apply_set(const std::string& argument, LoadedConfig& out) {
  const std::size_t equals = argument.find('=');
  const std::string key = argument.substr(0, equals);
  constexpr std::string_view kKey =
      "abcdefghijklmnopqrstuvwxyz0123456789_-.ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const bool dotted = key.find('.') != std::string::npos && key.front() != '.' &&
                      key.back() != '.' && key.find("..") == std::string::npos &&
                      key.find_first_not_of(kKey) == std::string::npos;
  if (equals == std::string::npos || !dotted) {
    out.problems.push_back(
        {{"--set", 1, 1, argument}, "write section.key=VALUE, such as proxy.workers=2"});
    return;
  }
  apply({"--set", argument, key + "=", key, argument.substr(equals + 1)}, out);
}

void apply_flag(const char* flag, const char* key, const std::optional<std::string>& value,
                LoadedConfig& out) {
  if (!value) return;
  const std::string prefix = std::string(flag) + " ";
  apply({flag, prefix + *value, prefix, key, *value, true}, out);
}

void apply_file(LoadedConfig& out) {
  const Result<std::string> text = read_text_file(out.file);
  if (!text) {
    out.problems.push_back({{out.file, 1, 1, ""}, text.error()});
    return;
  }
  TomlDocument document({out.file, *text});
  read_sections(document, out.config, out.base);
  out.problems = std::move(document.problems());
}

void hide_secrets(Diagnostics& problems) {
  for (Diagnostic& problem : problems) problem.excerpt = without_webhook(problem.excerpt);
}

bool everybody_reads(const std::string& path) {
  struct stat about {};
  return !path.empty() && ::stat(path.c_str(), &about) == 0 && (about.st_mode & S_IROTH) != 0;
}

}  // namespace

std::string Environment::get(const std::string& name) const {
  const auto variable = variables.find(name);
  return variable == variables.end() ? std::string() : variable->second;
}

std::vector<std::string> exposed_secrets(const LoadedConfig& loaded) {
  std::vector<std::string> warnings;
  const std::string& webhook = loaded.config.alerts.webhook;
  if (!webhook.empty() && everybody_reads(loaded.file)) {
    const auto text = read_text_file(loaded.file);
    if (text && text->find(webhook) != std::string::npos) {  // else it came otherwise
      warnings.push_back(
          loaded.file +
          ": warning: everybody on this machine can read alerts.webhook there, which is a secret: "
          "give the file to the group that sluice runs as, then chmod o-r");
    }
  }
  const std::string& ca_key = loaded.config.tls.ca_key;
  if (everybody_reads(ca_key)) {
    warnings.push_back(ca_key +
                       ": warning: everybody on this machine can read tls.ca_key, and so pose as "
                       "any site to whoever trusts that CA: chmod o-r, and make a new CA");
  }
  return warnings;
}

Result<std::string> read_text_file(const std::string& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) return Error{"is a directory"};
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{std::string("cannot be read: ") + std::strerror(errno)};
  std::string text(kLargestToml + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return Error{std::string("cannot be read: ") + std::strerror(errno)};
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kLargestToml) return Error{"is larger than 1 MiB"};
  return text;
}

std::map<std::string, std::string> setting_variables() {
  TomlDocument empty({"", ""});
  Config config;
  Policy base;
  read_sections(empty, config, base);
  std::map<std::string, std::string> out;
  for (const std::string& key : empty.known()) {
    if (key.find('.') == std::string::npos) continue;
    std::string name = std::string(kPrefix) + key;
    for (char& c : name) {
      if (c == '.') c = '_';
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    out[name] = key;
  }
  return out;
}

LoadedConfig read_config_text(std::string_view text, const std::string& file) {
  LoadedConfig out;
  out.file = file;
  TomlDocument document({file, std::string(text)});
  read_sections(document, out.config, out.base);
  out.problems = std::move(document.problems());
  hide_secrets(out.problems);
  return out;
}

LoadedConfig load_config(const ConfigFlags& flags, const Environment& environment) {
  LoadedConfig out;
  out.file = find_config(flags, environment);
  out.policies_dir = find_policies(flags, environment, out.file);
  out.state_dir = find_state(flags, environment);
  if (!out.file.empty()) apply_file(out);
  apply_environment(environment, out);
  for (const std::string& argument : flags.set) apply_set(argument, out);
  apply_flag("--listen", "proxy.listen", flags.listen, out);
  apply_flag("--admin", "admin.listen", flags.admin, out);
  const TlsConfig& tls = out.config.tls;
  if (out.problems.empty() && tls.ca_cert.empty() != tls.ca_key.empty()) {
    out.problems.push_back({{out.file.empty() ? "tls" : out.file, 1, 1, ""},
                            "tls.ca_cert and tls.ca_key go together: one of them is missing"});
  }
  hide_secrets(out.problems);
  return out;
}

}  // namespace sluice
