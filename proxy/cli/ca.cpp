// `sluice ca init|export|path`: the CA that signs what intercepted clients see.
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <filesystem>
#include <functional>
#include <iostream>

#include "proxy/cli/commands.h"
#include "proxy/clock.h"
#include "proxy/tls/authority.h"
#include "proxy/tls/certificate.h"

namespace sluice {
namespace {

enum class Want : std::uint8_t { shown, made, made_anew };

int fail(const std::string& message, int code = kExitUsage) {
  std::cerr << "sluice: " << message << "\n";
  return code;
}

// Who only wants to be shown the CA, and of a directory by name, has mistyped one that is not
// there.
bool is_mistyped(const CommandLine& line, Want want, const AuthorityFiles& files) {
  return want == Want::shown && files.own && line.flags.state_dir &&
         !std::filesystem::exists(*line.flags.state_dir);
}

// SHA-256, as browsers and `openssl x509 -fingerprint` show it.
std::string fingerprint(const X509& certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  X509_digest(&certificate, EVP_sha256(), digest.data(), &size);
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    if (i > 0) out += ':';
    out += "0123456789ABCDEF"[digest[i] >> 4];
    out += "0123456789ABCDEF"[digest[i] & 15];
  }
  return out;
}

int with_authority(const CommandLine& line, Want want,
                   const std::function<void(const Authority&, const AuthorityFiles&)>& use) {
  const LoadedConfig loaded = load_config(line.flags, line.environment);
  for (const Diagnostic& problem : loaded.problems) std::cerr << render(problem);
  if (!loaded.problems.empty()) return kExitUsage;
  const AuthorityFiles files = authority_files(loaded.config.tls, loaded.state_dir);
  if (is_mistyped(line, want, files)) {
    return fail("there is no state directory " + *line.flags.state_dir +
                    ": `sluice ca init` makes it, --state-dir names another one",
                kExitUnreachable);
  }
  const bool anew = want == Want::made_anew;
  if (anew && !files.own) return fail("tls.ca_cert names a CA: it is not Sluice's to make anew");
  const auto authority =
      anew ? Authority::make_anew(files, utc_now()) : Authority::load_or_make(files, utc_now());
  if (!authority) return fail(authority.error());
  use(*authority, files);
  return kExitOk;
}

void print_summary(const Authority& authority, const AuthorityFiles& files) {
  std::cout << "certificate  " << files.certificate << "\n"
            << "key          " << files.key << "\n"
            << "SHA-256      " << fingerprint(authority.certificate()) << "\n";
}

void print_certificate(const Authority& authority, const AuthorityFiles&) {
  const BioPtr out(BIO_new_fp(stdout, BIO_NOCLOSE));
  PEM_write_bio_X509(out.get(), &authority.certificate());
}

}  // namespace

void add_ca_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = add_command(
      app, "ca", "the CA that signs the certificates of intercepted hosts",
      "  sluice ca init\n"
      "  sluice ca export > sluice-ca.pem\n"
      "  curl --cacert \"$(sluice ca path)\" -x 127.0.0.1:7878 https://api.example.com/\n");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* does) {
    CLI::App* one = command->add_subcommand(name, does);
    add_config_flags(*one, line.flags);
    return one;
  };
  auto force = std::make_shared<bool>(false);
  CLI::App* init = add("init", "make the CA, unless there is one, and say where it is");
  init->add_flag(
      "--force", *force,
      "make a new one, which a running proxy takes up within seconds; clients must be given it");
  init->callback([&line, force] {
    line.chosen = [&line, force] {
      return with_authority(line, *force ? Want::made_anew : Want::made, print_summary);
    };
  });
  add("export", "print the certificate (PEM), never the key")->callback([&line] {
    line.chosen = [&line] { return with_authority(line, Want::shown, print_certificate); };
  });
  add("path", "print where the certificate is")->callback([&line] {
    line.chosen = [&line] {
      return with_authority(line, Want::shown, [](const Authority&, const AuthorityFiles& files) {
        std::cout << files.certificate << "\n";
      });
    };
  });
}

}  // namespace sluice
