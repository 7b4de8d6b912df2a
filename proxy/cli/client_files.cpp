#include "proxy/cli/client_files.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "proxy/cli/node_shim.h"
#include "proxy/net/socket.h"
#include "proxy/tls/handles.h"

namespace sluice {
namespace {

constexpr std::size_t kNameBytes = 8;
constexpr std::size_t kKeptDirectories = 100;

// Where systems keep all their CAs in one file.
constexpr const char* kSystemBundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Alpine, Arch
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",                             // openSUSE
    "/etc/ssl/cert.pem",                                  // BSD, macOS
};

std::string content(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::string system_bundle() {
  for (const char* path : kSystemBundles) {
    if (access(path, R_OK) == 0) return path;
  }
  return {};
}

void append(std::string& text, const std::string& more) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += more;
}

void append_once(std::string& text, const std::string& more) {
  if (text.find(more) == std::string::npos) append(text, more);
}

// What the user has had Node and Deno add to their own.
std::string added_so_far(const Environment& environment) {
  std::string all;
  for (const char* name : {"NODE_EXTRA_CA_CERTS", "DENO_CERT"}) {
    append_once(all, content(environment.get(name)));
  }
  return all;
}

// What this user's clients trust without us, all of it: one of the first three whose variable is
// not set trusts the system's. Inside another exec, they name that one's bundle.
std::string trusted_so_far(const Environment& environment) {
  std::string all;
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"}) {
    const std::string path = environment.get(name);
    append_once(all, content(path.empty() ? system_bundle() : path));
  }
  for (const char* name : {"GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO",
                           "BUNDLE_SSL_CA_CERT", "npm_config_cafile", "NPM_CONFIG_CAFILE"}) {
    append_once(all, content(environment.get(name)));
  }
  append_once(all, added_so_far(environment));
  return all.empty() ? content(system_bundle()) : all;
}

// The user's own settings of wget, without the line that an exec around this one has added.
std::string wget_settings(const Environment& environment, const std::string& directory) {
  std::string path = environment.get("WGETRC");
  if (path.empty()) path = environment.get("HOME") + "/.wgetrc";
  std::string text = content(path);
  if (!path.starts_with(directory + "/")) return text;
  return text.substr(0, text.rfind("ca_certificate = "));
}

// The same name for the same texts.
std::string name_of(std::initializer_list<std::string_view> texts) {
  std::string all;
  for (const std::string_view text : texts) {
    all += std::to_string(text.size()) + ":";
    all += text;
  }
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(all.data()), all.size(), digest);
  std::string name;
  for (std::size_t i = 0; i < kNameBytes; ++i)
    name += {"0123456789abcdef"[digest[i] >> 4], "0123456789abcdef"[digest[i] & 15]};
  return name;
}

// Of the directories beside `used`, the last used ones stay.
void tidy(const std::string& directory, const std::string& used) {
  utimensat(AT_FDCWD, used.c_str(), nullptr, 0);
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> all;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    all.emplace_back(entry.last_write_time(failed), entry.path());
  }
  if (all.size() <= kKeptDirectories) return;
  std::sort(all.begin(), all.end(), std::greater<>());
  for (std::size_t i = kKeptDirectories; i < all.size(); ++i) {
    std::filesystem::remove_all(all[i].second, failed);
  }
}

Result<std::string> put(const std::string& path, const std::string& text) {
  if (content(path) == text) return path;
  const std::string draft = path + "." + std::to_string(getpid());
  const OwnedSocket file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      rename(draft.c_str(), path.c_str()) != 0) {
    return Error{path + " cannot be written: " + std::strerror(errno)};
  }
  return path;
}

// Java's DataOutputStream.
class JavaWriter {
 public:
  void number(std::uint64_t value, int bytes) {
    while (bytes-- > 0) out_ += static_cast<char>(value >> (8 * bytes) & 0xff);
  }
  void text(std::string_view value) {
    number(value.size(), 2);
    out_ += value;
  }
  void bytes(std::string_view value) {
    number(value.size(), 4);
    out_ += value;
  }
  std::string& out() { return out_; }

 private:
  std::string out_;
};

// The store's seal: no secret, only a checksum with a custom.
std::string seal(const std::string& body) {
  std::string text;
  for (const char* c = kTrustStorePassword; *c != '\0'; ++c) text += {'\0', *c};  // UTF-16BE
  text += "Mighty Aphrodite";
  text += body;
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return {reinterpret_cast<const char*>(digest), sizeof digest};
}

}  // namespace

Result<std::string> make_trust_store(const std::string& bundle) {
  const BioPtr text(BIO_new_mem_buf(bundle.data(), static_cast<int>(bundle.size())));
  JavaWriter entries;
  std::uint32_t count = 0;
  while (const CertPtr certificate{PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)}) {
    unsigned char* der = nullptr;
    const int size = i2d_X509(certificate.get(), &der);
    if (size <= 0) continue;
    entries.number(2, 4);  // a trusted certificate
    entries.text("ca" + std::to_string(count++));
    entries.number(0, 8);  // since when: of no meaning here
    entries.text("X.509");
    entries.bytes({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
    OPENSSL_free(der);
  }
  take_openssl_error();  // the end of the text is one, too
  if (count == 0) return Error{"the bundle holds no certificate"};
  JavaWriter store;
  store.number(0xfeedfeed, 4);
  store.number(2, 4);
  store.number(count, 4);
  store.out() += entries.out();
  return store.out() + seal(store.out());
}

Result<ClientFiles> write_client_files(const std::string& directory, const std::string& authority,
                                       const Environment& environment) {
  std::string bundle = trusted_so_far(environment);
  const std::string own = content(authority);
  append_once(bundle, own);
  std::string additions = added_so_far(environment);
  append_once(additions, own);
  std::string wgetrc = wget_settings(environment, directory);
  append(wgetrc, "");  // whole lines, so that it is the same text inside another exec
  const std::string place = directory + "/" + name_of({bundle, additions, wgetrc, kNodeShim});
  const ClientFiles files{
      place + "/additions.pem", place + "/ca-bundle.pem", place + "/truststore.jks",
      place + "/wgetrc",        place + "/php",           place + "/node-proxy.cjs"};
  std::error_code failed;
  std::filesystem::create_directories(files.php_ini, failed);
  // The user's settings of wget may hold a password.
  if (!failed) std::filesystem::permissions(directory, std::filesystem::perms::owner_all, failed);
  if (failed) return Error{place + " cannot be made: " + failed.message()};
  const auto trust_store = make_trust_store(bundle);
  if (!trust_store) return Error{trust_store.error()};
  append(wgetrc, "ca_certificate = " + files.bundle + "\n");
  const std::string php =
      "openssl.cafile = \"" + files.bundle + "\"\ncurl.cainfo = \"" + files.bundle + "\"\n";
  const std::string shim(kNodeShim);
  const std::pair<std::string, const std::string*> texts[] = {
      {files.additions, &additions},         {files.bundle, &bundle},
      {files.trust_store, &*trust_store},    {files.wgetrc, &wgetrc},
      {files.php_ini + "/sluice.ini", &php}, {files.node_shim, &shim}};
  for (const auto& [path, text] : texts) {
    if (const auto written = put(path, *text); !written) return Error{written.error()};
  }
  tidy(directory, place);
  return files;
}

}  // namespace sluice
