#include "proxy/cli/client_environment.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr std::string_view kLocal = "localhost,127.0.0.0/8,127.0.0.1,::1";
constexpr std::string_view kLocalJava = "localhost|127.*|[::1]";

// What the user exempts stays exempt.
std::string no_proxy(const Environment& environment) {
  std::string out;
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    if (out.empty()) out = environment.get(name);
  }
  if (out.find(kLocal) != std::string::npos) return out;
  return out.empty() ? std::string(kLocal) : out + "," + std::string(kLocal);
}

// Java's only pattern is a "*" at an end. It knows no networks and no ports, and takes a name for
// itself alone, where other clients take it for what is below it as well.
std::string java_patterns(const std::string& entry) {
  if (entry.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              ".-_*:[]") != std::string::npos) {
    return {};
  }
  const auto colons = std::count(entry.begin(), entry.end(), ':');
  if (colons == 1) return {};
  if (colons > 1) return (entry.starts_with('[') ? entry : "[" + entry + "]") + "|";
  if (entry.starts_with('*')) return entry + "|";
  return entry.starts_with('.') ? "*" + entry + "|" : entry + "|*." + entry + "|";
}

std::string no_proxy_for_java(const Environment& environment) {
  std::string list = no_proxy(environment);
  list.erase(list.find(kLocal), kLocal.size());
  std::string out;
  for (std::size_t at = 0; (at = list.find_first_not_of(", \t", at)) != std::string::npos;) {
    const std::size_t end = std::min(list.find_first_of(", \t", at), list.size());
    out += java_patterns(list.substr(at, end - at));
    at = end;
  }
  return out + std::string(kLocalJava);
}

// Node splits NODE_OPTIONS at spaces outside of double quotes; in them, a backslash takes the next
// character as it is.
std::string quoted_for_node(const std::string& option) {
  if (option.find_first_of(" \"") == std::string::npos) return option;
  std::string out = "\"";
  for (const char c : option) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// The JVM splits JAVA_TOOL_OPTIONS at white space outside of quotes, and knows both kinds of them
// but no escapes.
std::string quoted_for_java(const std::string& option) {
  if (option.find_first_of(" \t\"'") == std::string::npos) return option;
  std::string out = "\"";
  for (const char c : option) out += c == '"' ? "\"'\"'\"" : std::string(1, c);
  return out + "\"";
}

// Behind what the user has there, once.
std::string appended(const std::string& before, const std::string& added) {
  if (before.find(added) != std::string::npos) return before;
  return before.empty() ? added : before + " " + added;
}

std::string java_options(const ProxyAddress& proxy, const ClientFiles& files,
                         const Environment& environment) {
  std::string out;
  for (const char* scheme : {"http", "https"}) {
    const std::string prefix = std::string("-D") + scheme + ".proxy";
    out += prefix + "Host=" + proxy.host + " " + prefix + "Port=" + proxy.port + " ";
  }
  out += "-Dhttp.nonProxyHosts=" + no_proxy_for_java(environment);
  out += " -Djavax.net.ssl.trustStore=" + quoted_for_java(files.trust_store);
  out += std::string(" -Djavax.net.ssl.trustStorePassword=") + kTrustStorePassword;
  return out;
}

std::string quoted(const std::string& text, Shell shell) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += shell == Shell::fish ? "\\'" : "'\\''";
    } else if (c == '\\' && shell == Shell::fish) {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace

// git asks its user for the password of a name that has none.
std::string ProxyAddress::url() const {
  return "http://" + (user.empty() ? "" : user + ":sluice@") + host + ":" + port;
}

Variables client_environment(const ProxyAddress& proxy, const ClientFiles& files,
                             const Environment& environment) {
  const std::string url = proxy.url();
  Variables out;
  for (const char* name :
       {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
        "CARGO_HTTP_PROXY", "npm_config_proxy", "npm_config_https_proxy"}) {
    out.emplace_back(name, url);
  }
  for (const char* name : {"no_proxy", "NO_PROXY", "npm_config_noproxy"}) {
    out.emplace_back(name, no_proxy(environment));
  }
  for (const char* name : {"SSL_CERT_FILE",         // OpenSSL: Python, Go, Rust, Ruby, PHP
                           "CURL_CA_BUNDLE",        // curl
                           "REQUESTS_CA_BUNDLE",    // Python's requests
                           "GIT_SSL_CAINFO",        // git
                           "PIP_CERT",              // pip
                           "AWS_CA_BUNDLE",         // the AWS SDKs and command line
                           "CARGO_HTTP_CAINFO",     // cargo
                           "BUNDLE_SSL_CA_CERT",    // Ruby's bundler
                           "npm_config_cafile"}) {  // npm
    out.emplace_back(name, files.bundle);
  }
  // These take what is added to their own.
  out.emplace_back("NODE_EXTRA_CA_CERTS", files.additions);
  out.emplace_back("DENO_CERT", files.additions);
  out.emplace_back("NODE_USE_ENV_PROXY", "1");
  out.emplace_back("NODE_OPTIONS", appended(environment.get("NODE_OPTIONS"),
                                            "--require=" + quoted_for_node(files.node_shim)));
  out.emplace_back("WGETRC", files.wgetrc);
  // An empty first element stands for PHP's own directory.
  out.emplace_back("PHP_INI_SCAN_DIR", environment.get("PHP_INI_SCAN_DIR") + ":" + files.php_ini);
  out.emplace_back("JAVA_TOOL_OPTIONS", appended(environment.get("JAVA_TOOL_OPTIONS"),
                                                 java_options(proxy, files, environment)));
  return out;
}

std::string shell_lines(const Variables& variables, Shell shell) {
  std::string out;
  for (const auto& [name, value] : variables) {
    out += shell == Shell::fish ? "set -gx " + name + " " + quoted(value, shell) + "\n"
                                : "export " + name + "=" + quoted(value, shell) + "\n";
  }
  return out;
}

}  // namespace sluice
