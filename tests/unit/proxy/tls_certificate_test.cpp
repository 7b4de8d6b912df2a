#include <doctest/doctest.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <thread>
#include <vector>

#include "unit/proxy/tls_support.h"

using namespace sluice;

namespace {

bool names_host(X509* certificate, const char* host) {
  return X509_check_host(certificate, host, 0, 0, nullptr) == 1;
}

bool names_ip(X509* certificate, const char* ip) {
  return X509_check_ip_asc(certificate, ip, 0) == 1;
}

bool signed_by(X509* leaf, X509& authority) {
  const Owned<X509_STORE, X509_STORE_free> store(X509_STORE_new());
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> check(X509_STORE_CTX_new());
  X509_STORE_add_cert(store.get(), &authority);
  X509_STORE_set_flags(store.get(), X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set_time(X509_STORE_get0_param(store.get()),
                             static_cast<time_t>(kToday.time_since_epoch() / 1s));
  X509_STORE_CTX_init(check.get(), store.get(), leaf, nullptr);
  const bool good = X509_verify_cert(check.get()) == 1;
  INFO(X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get())));
  CHECK(good);
  return good;
}

}  // namespace

TEST_CASE("leaf: names, addresses and long names, each under the strict rules") {
  const Scratch scratch;
  const auto authority = Authority::load_or_make(scratch.files(), kToday);
  REQUIRE(authority);
  const KeyPtr key = make_p256_key();
  const std::string label(60, 'a');
  const std::string long_name = label + "." + label + "." + label + ".example.org";
  struct Row {
    std::string host;
    bool ip;
  };
  for (const Row& row :
       {Row{"api.example.com", false}, Row{"localhost", false}, Row{"xn--bcher-kva.example", false},
        Row{"with_underscore.example", false}, Row{long_name, false}, Row{"127.0.0.1", true},
        Row{"::1", true}, Row{"2001:db8::17", true}}) {
    CAPTURE(row.host);
    const auto leaf = authority->leaf_for(row.host, *key, kToday);
    REQUIRE(leaf);
    CHECK(signed_by(leaf->get(), authority->certificate()));
    CHECK((row.ip ? names_ip(leaf->get(), row.host.c_str())
                  : names_host(leaf->get(), row.host.c_str())));
    CHECK_FALSE(names_host(leaf->get(), "other.example"));
    CHECK(X509_check_ca(leaf->get()) == 0);
  }
}

TEST_CASE("leaf: what no host can be called gets none") {
  const Scratch scratch;
  const auto authority = Authority::load_or_make(scratch.files(), kToday);
  REQUIRE(authority);
  const KeyPtr key = make_p256_key();
  for (const std::string& host :
       {std::string(), std::string("a b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("b\xfc"
                    "cher"),
        std::string(254, 'a')}) {
    CAPTURE(host);
    CHECK_FALSE(authority->leaf_for(host, *key, kToday));
  }
}

TEST_CASE("leaf: backdated, short-lived, and never outliving its CA") {
  const Scratch scratch;
  const auto authority = Authority::load_or_make(scratch.files(), kToday);
  REQUIRE(authority);
  const KeyPtr key = make_p256_key();
  const auto fresh = authority->leaf_for("a.example", *key, kToday + 48h);
  REQUIRE(fresh);
  CHECK(not_before(**fresh) == kToday + 48h - kBackdated);
  CHECK(not_after(**fresh) == kToday + 48h + kLeafLife);
  const UtcTime end = not_after(authority->certificate());
  CHECK(end == kToday + kAuthorityLife);
  const auto first = authority->leaf_for("a.example", *key, kToday - 1h);
  REQUIRE(first);
  CHECK(not_before(**first) == not_before(authority->certificate()));
  const auto last = authority->leaf_for("a.example", *key, end - 1h);
  REQUIRE(last);
  CHECK(not_after(**last) == end);
  CHECK_FALSE(authority->leaf_for("a.example", *key, end));
}

TEST_CASE("CA: made once, for its owner only") {
  const Scratch scratch;
  const AuthorityFiles files = authority_files({}, scratch.path() + "/deep/state");
  REQUIRE(Authority::load_or_make(files, kToday));
  struct stat about {};
  REQUIRE(stat(files.key.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
  const std::string before = content(files.certificate);
  REQUIRE(Authority::load_or_make(files, kToday + 24h));
  CHECK(content(files.certificate) == before);
}

TEST_CASE("CA: two that make it at once make one") {
  const Scratch scratch;
  std::vector<std::thread> threads;
  std::vector<std::string> made(8);
  for (std::string& seen : made) {
    threads.emplace_back([&] {
      if (Authority::load_or_make(scratch.files(), kToday)) {
        seen = content(scratch.files().certificate);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& seen : made) CHECK((!seen.empty() && seen == made.front()));
}

TEST_CASE("CA: what is wrong with the files is said") {
  const Scratch scratch, other;
  AuthorityFiles files = scratch.files();
  REQUIRE(Authority::load_or_make(files, kToday));
  REQUIRE(Authority::load_or_make(other.files(), kToday));
  const auto problem = [](const Result<Authority>& loaded) {
    return loaded ? std::string("none") : loaded.error();
  };
  CHECK(problem(Authority::load(files, kToday)) == "none");
  SUBCASE("a key that others can read") {
    chmod(files.key.c_str(), 0640);
    CHECK(problem(Authority::load(files, kToday)) ==
          "the CA key " + files.key +
              " can be read or written by others (mode 0640): chmod 600 it, and make a new CA if "
              "anyone may have copied it");
  }
  SUBCASE("another CA's key") {
    files.key = other.files().key;
    CHECK(problem(Authority::load(files, kToday)) == "the CA certificate " + files.certificate +
                                                         " and the key " + files.key +
                                                         " do not belong together");
  }
  SUBCASE("no certificate") {
    files.certificate = scratch.write("note", "hello");
    CHECK(problem(Authority::load(files, kToday)).find("holds no certificate") !=
          std::string::npos);
  }
  SUBCASE("not valid yet") {
    CHECK(problem(Authority::load(files, kToday - kBackdated - 1s))
              .find("is not valid yet: the clock") != std::string::npos);
  }
  SUBCASE("expired") {
    CHECK(problem(Authority::load(files, kToday + kAuthorityLife)) ==
          "the CA " + files.certificate +
              " has expired: make a new one with `sluice ca init --force`");
  }
  SUBCASE("a given CA is never made") {
    files = {scratch.path() + "/none.pem", scratch.path() + "/none.key", false};
    CHECK(problem(Authority::load_or_make(files, kToday)).find("cannot be read") !=
          std::string::npos);
  }
}

TEST_CASE("authority: what stands between its leaves and a root is its chain") {
  const Scratch scratch;
  // A root, a CA below it, and a CA below that one: the file holds all three, the last one first.
  const KeyPtr keys[] = {make_p256_key(), make_p256_key(), make_p256_key()};
  std::string text;
  std::vector<CertPtr> made;
  for (int i = 0; i < 3; ++i) {
    auto certificate = make_authority_certificate(*keys[i], std::to_string(i), kToday);
    REQUIRE(certificate);
    if (i > 0) {
      X509_set_issuer_name(certificate->get(), X509_get_subject_name(made.back().get()));
      REQUIRE(X509_sign(certificate->get(), keys[i - 1].get(), EVP_sha256()) > 0);
    }
    const BioPtr out(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(out.get(), certificate->get());
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out.get(), &bytes);
    text.insert(0, std::string(bytes, static_cast<std::size_t>(size)));
    made.push_back(std::move(*certificate));
  }
  const BioPtr key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(key_text.get(), keys[2].get(), nullptr, nullptr, 0, nullptr,
                                nullptr);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(key_text.get(), &bytes);
  const AuthorityFiles files{
      scratch.write("chain.pem", text),
      scratch.write("ca.key", std::string(bytes, static_cast<std::size_t>(size))), false};
  chmod(files.key.c_str(), 0600);
  const auto authority = Authority::load(files, kToday);
  REQUIRE(authority);
  REQUIRE(authority->chain()->size() == 2);  // not the root
  CHECK(X509_cmp(authority->chain()->at(0).get(), made[2].get()) == 0);
  CHECK(X509_cmp(authority->chain()->at(1).get(), made[1].get()) == 0);

  REQUIRE(Authority::load_or_make(scratch.files(), kToday));
  CHECK(Authority::load(scratch.files(), kToday)->chain()->empty());  // our own is a root
}
