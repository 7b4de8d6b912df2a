#include "proxy/tls/authority.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "proxy/net/socket.h"
#include "proxy/tls/certificate.h"

namespace sluice {
namespace {

std::string why() { return std::strerror(errno); }

std::string machine_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string octal(mode_t mode) {
  std::string out = "0";
  for (int shift = 6; shift >= 0; shift -= 3) {
    out += static_cast<char>('0' + (static_cast<unsigned>(mode) >> shift & 7u));
  }
  return out;
}

// Empty: the file is its owner's alone. Who may read a key that the user names is the user's to say
// (a group for keys, a secret mounted for one container); the start and `check` warn of everybody.
std::string exposure(const AuthorityFiles& files, int fd) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return files.key + " cannot be examined: " + why();
  if ((about.st_mode & (files.own ? 077u : 022u)) != 0) {
    return "the CA key " + files.key + " can be read or written by others (mode " +
           octal(about.st_mode) + "): chmod 600 it, and make a new CA if anyone may have copied it";
  }
  if (about.st_uid != geteuid() && about.st_uid != 0) {
    return "the CA key " + files.key + " belongs to another user";
  }
  return {};
}

Result<std::string> write_new(const std::string& path, mode_t mode, BIO& content) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(&content, &bytes);
  unlink(path.c_str());
  const OwnedSocket file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file || write(file.get(), bytes, static_cast<std::size_t>(size)) != size ||
      fsync(file.get()) != 0) {
    return Error{path + " cannot be written: " + why()};
  }
  return path;
}

// RFC 8446 §4.4.2: whoever is to verify a chain has its root, so that may be left out.
CertChain chain_of(X509& authority, BIO& rest_of_file) {
  std::vector<CertPtr> chain;
  const auto add = [&chain](CertPtr certificate) {
    if (X509_self_signed(certificate.get(), 0) != 1) chain.push_back(std::move(certificate));
  };
  X509_up_ref(&authority);
  add(CertPtr(&authority));
  while (CertPtr above{PEM_read_bio_X509(&rest_of_file, nullptr, nullptr, nullptr)}) {
    add(std::move(above));
  }
  take_openssl_error();  // the end of the file is one, too
  return std::make_shared<const std::vector<CertPtr>>(std::move(chain));
}

Result<bool> make(const AuthorityFiles& files, UtcTime now) {
  const KeyPtr key = make_p256_key();
  auto certificate = make_authority_certificate(*key, machine_name(), now);
  if (!certificate) return Error{certificate.error()};
  const BioPtr key_text(BIO_new(BIO_s_secmem()));
  const BioPtr certificate_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                    nullptr) != 1 ||
      PEM_write_bio_X509(certificate_text.get(), certificate->get()) != 1) {
    return Error{"the CA could not be written: " + take_openssl_error()};
  }
  // Both are complete under another name before either appears; the certificate, whose presence
  // says that there is a CA, comes last.
  const auto new_key = write_new(files.key + ".new", 0600, *key_text);
  if (!new_key) return Error{new_key.error()};
  const auto new_certificate = write_new(files.certificate + ".new", 0644, *certificate_text);
  if (!new_certificate) return Error{new_certificate.error()};
  if (rename(new_key->c_str(), files.key.c_str()) != 0 ||
      rename(new_certificate->c_str(), files.certificate.c_str()) != 0) {
    return Error{"the CA cannot be put in place: " + why()};
  }
  return true;
}

// Makes the directory where there is none. Held by whoever makes the CA.
Result<OwnedSocket> lock_directory(const AuthorityFiles& files) {
  const std::string directory = std::filesystem::path(files.certificate).parent_path().string();
  std::error_code failed;
  const bool fresh = std::filesystem::create_directories(directory, failed);
  if (failed) return Error{directory + " cannot be made: " + failed.message()};
  if (fresh) chmod(directory.c_str(), 0700);
  OwnedSocket lock(::open((directory + "/ca.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || flock(lock.get(), LOCK_EX) != 0) {
    return Error{directory + " cannot be locked: " + why()};
  }
  return lock;
}

}  // namespace

AuthorityFiles authority_files(const TlsConfig& config, const std::string& state_directory) {
  if (!config.ca_cert.empty()) return {config.ca_cert, config.ca_key, false};
  return {state_directory + "/ca-cert.pem", state_directory + "/ca-key.pem"};
}

Result<Authority> Authority::load(const AuthorityFiles& files, UtcTime now) {
  const BioPtr text(BIO_new_file(files.certificate.c_str(), "r"));
  if (!text) return Error{"the CA certificate " + files.certificate + " cannot be read: " + why()};
  CertPtr certificate(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    return Error{files.certificate + " holds no certificate: " + take_openssl_error()};
  }
  const OwnedSocket file(::open(files.key.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Error{"the CA key " + files.key + " cannot be read: " + why()};
  if (std::string exposed = exposure(files, file.get()); !exposed.empty()) {
    return Error{std::move(exposed)};
  }
  const BioPtr key_text(BIO_new_fd(file.get(), BIO_NOCLOSE));
  // An empty pass phrase: a daemon has nobody to ask.
  KeyPtr key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, const_cast<char*>("")));
  if (!key) return Error{files.key + " holds no usable key: " + take_openssl_error()};
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    take_openssl_error();
    return Error{"the CA certificate " + files.certificate + " and the key " + files.key +
                 " do not belong together"};
  }
  if (X509_check_ca(certificate.get()) != 1) {
    return Error{files.certificate + " is not the certificate of a CA"};
  }
  if (not_after(*certificate) <= now) {
    return Error{"the CA " + files.certificate + " has expired" +
                 (files.own ? ": make a new one with `sluice ca init --force`" : "")};
  }
  if (now < not_before(*certificate)) {
    return Error{
        "the CA " + files.certificate +
        " is not valid yet: the clock of this machine, or of the one that made it, is wrong"};
  }
  CertChain chain = chain_of(*certificate, *text);
  return Authority(std::move(certificate), std::move(key), std::move(chain));
}

Result<Authority> Authority::load_or_make(const AuthorityFiles& files, UtcTime now) {
  if (files.own && !exists(files.certificate)) {
    const auto lock = lock_directory(files);
    if (!lock) return Error{lock.error()};
    if (!exists(files.certificate)) {
      if (const auto made = make(files, now); !made) return Error{made.error()};
    }
  }
  return load(files, now);
}

Result<Authority> Authority::make_anew(const AuthorityFiles& files, UtcTime now) {
  // With the lock, so that nobody makes one between the two steps.
  const auto lock = lock_directory(files);
  if (!lock) return Error{lock.error()};
  for (const std::string& path : {files.certificate, files.key}) {
    if (rename(path.c_str(), (path + ".old").c_str()) != 0 && errno != ENOENT) {
      return Error{path + " cannot be set aside: " + why()};
    }
  }
  if (const auto made = make(files, now); !made) return Error{made.error()};
  return load(files, now);
}

Result<CertPtr> Authority::leaf_for(std::string_view host, EVP_PKEY& leaf_key, UtcTime now) const {
  return make_leaf_certificate(*certificate_, *key_, leaf_key, host, now);
}

}  // namespace sluice
