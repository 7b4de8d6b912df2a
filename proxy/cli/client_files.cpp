#include "proxy/cli/client_files.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "proxy/cli/node_shim.h"
#include "proxy/net/socket.h"
#include "proxy/tls/handles.h"

namespace sluice {
namespace {

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

// What this user's clients trust without us.
std::string trusted_so_far(const Environment& environment) {
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"}) {
    if (const std::string path = environment.get(name); !path.empty()) {
      if (std::string text = content(path); !text.empty()) return text;
    }
  }
  for (const char* path : kSystemBundles) {
    if (std::string text = content(path); !text.empty()) return text;
  }
  return {};
}

Result<std::string> put(const std::string& path, const std::string& text) {
  if (content(path) == text) return path;
  const std::string draft = path + "." + std::to_string(getpid());
  const OwnedSocket file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
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
  std::error_code failed;
  std::filesystem::create_directories(directory + "/php", failed);
  if (failed) return Error{directory + " cannot be made: " + failed.message()};
  std::string bundle = trusted_so_far(environment);
  const std::string own = content(authority);
  if (bundle.find(own) == std::string::npos) {
    if (!bundle.empty() && bundle.back() != '\n') bundle += '\n';
    bundle += own;
  }
  const auto trust_store = make_trust_store(bundle);
  if (!trust_store) return Error{trust_store.error()};
  ClientFiles files{authority,
                    directory + "/ca-bundle.pem",
                    directory + "/truststore.jks",
                    directory + "/wgetrc",
                    directory + "/php",
                    directory + "/node-proxy.cjs"};
  const std::string home_wgetrc = environment.get("WGETRC").empty()
                                      ? environment.get("HOME") + "/.wgetrc"
                                      : environment.get("WGETRC");
  std::string wgetrc = home_wgetrc == files.wgetrc ? std::string() : content(home_wgetrc);
  wgetrc += (wgetrc.empty() ? "" : "\n") + ("ca_certificate = " + files.bundle) + "\n";
  const std::string php =
      "openssl.cafile = \"" + files.bundle + "\"\ncurl.cainfo = \"" + files.bundle + "\"\n";
  const std::pair<std::string, const std::string*> texts[] = {
      {files.bundle, &bundle},
      {files.trust_store, &*trust_store},
      {files.wgetrc, &wgetrc},
      {files.php_ini + "/sluice.ini", &php}};
  for (const auto& [path, text] : texts) {
    if (const auto written = put(path, *text); !written) return Error{written.error()};
  }
  if (const auto written = put(files.node_shim, std::string(kNodeShim)); !written) {
    return Error{written.error()};
  }
  return files;
}

}  // namespace sluice
