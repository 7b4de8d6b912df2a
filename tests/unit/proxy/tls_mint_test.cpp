#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "unit/proxy/tls_support.h"

using namespace sluice;

namespace {

std::atomic<std::int64_t> shift_seconds{0};  // what the mint takes for the time
UtcTime shifted_now() { return kToday + std::chrono::seconds(shift_seconds.load()); }

void run_here(const std::function<void()>& job) { job(); }

Result<LeafRef> fetch(Mint& mint, const std::string& host) {
  std::promise<Result<LeafRef>> got;
  const auto handle =
      mint.want(host, run_here, [&](Result<LeafRef> leaf) { got.set_value(std::move(leaf)); });
  return got.get_future().get();
}

}  // namespace

TEST_CASE("mint: one leaf per name however many ask, and none when it is there") {
  shift_seconds = 0;
  const Scratch scratch;
  Mint mint(scratch.files(), shifted_now);
  CHECK(mint.find("a.example") == nullptr);
  constexpr int kMany = 100;
  std::atomic<int> answers{0};
  std::promise<void> all;
  std::vector<Mint::Handle> handles;
  for (int i = 0; i < kMany; ++i) {
    handles.push_back(mint.want("a.example", run_here, [&](const Result<LeafRef>& leaf) {
      if (leaf && ++answers == kMany) all.set_value();
    }));
  }
  all.get_future().wait();
  CHECK(mint.minted() == 1);
  CHECK(mint.find("a.example") != nullptr);
  REQUIRE(fetch(mint, "a.example"));
  CHECK(mint.minted() == 1);
}

TEST_CASE("mint: the least used goes when there are too many") {
  shift_seconds = 0;
  const Scratch scratch;
  Mint mint(scratch.files(), shifted_now, 2);
  REQUIRE(fetch(mint, "a.example"));
  REQUIRE(fetch(mint, "b.example"));
  CHECK(mint.find("a.example"));
  REQUIRE(fetch(mint, "c.example"));
  CHECK(mint.find("a.example"));
  CHECK_FALSE(mint.find("b.example"));
  CHECK(mint.find("c.example"));
}

TEST_CASE("mint: a leaf is renewed at half its life") {
  shift_seconds = 0;
  const Scratch scratch;
  Mint mint(scratch.files(), shifted_now);
  const auto first = fetch(mint, "a.example");
  REQUIRE(first);
  shift_seconds = kLeafLife / 2 / 1s - 1;
  CHECK(*fetch(mint, "a.example") == *first);  // the disk is looked at, and nothing has changed
  CHECK(mint.find("a.example") == *first);
  shift_seconds = kLeafLife / 2 / 1s;
  CHECK_FALSE(mint.find("a.example"));
  const auto second = fetch(mint, "a.example");
  REQUIRE(second);
  CHECK(*second != *first);
}

TEST_CASE(
    "mint: a clock that is set back far makes new leaves, and says when the CA is too young") {
  shift_seconds = 0;
  const Scratch scratch;
  REQUIRE(Authority::load_or_make(scratch.files(), kToday - 96h));
  Mint mint(scratch.files(), shifted_now);
  const auto first = fetch(mint, "a.example");
  REQUIRE(first);
  shift_seconds = -kBackdated / 1s;
  CHECK(*fetch(mint, "a.example") == *first);
  shift_seconds = -kBackdated / 1s - 1;
  CHECK(mint.find("a.example") == nullptr);
  const auto second = fetch(mint, "a.example");
  REQUIRE(second);
  CHECK(not_before(*(*second)->certificate) <= shifted_now());
  shift_seconds = -(96h + kBackdated) / 1s - 1;
  const auto refused = fetch(mint, "a.example");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().find("is not valid yet") != std::string::npos);
}

namespace {

bool signed_by(const LeafRef& leaf, const Authority& authority) {
  return X509_verify(leaf->certificate.get(), X509_get0_pubkey(&authority.certificate())) == 1;
}

}  // namespace

TEST_CASE("mint: a new CA ends the leaves of the one before") {
  shift_seconds = 0;
  const Scratch scratch;
  Mint mint(scratch.files(), shifted_now);
  const auto first = fetch(mint, "a.example");
  REQUIRE(first);
  shift_seconds = 4;
  CHECK(mint.find("a.example") == *first);
  const auto other = Authority::make_anew(scratch.files(), shifted_now());
  REQUIRE(other);
  CHECK(mint.find("a.example") == *first);  // it has just looked
  shift_seconds = 5;
  CHECK(mint.find("a.example") == nullptr);
  const auto second = fetch(mint, "a.example");
  REQUIRE(second);
  CHECK(signed_by(*second, *other));
  CHECK_FALSE(signed_by(*first, *other));
  CHECK(mint.minted() == 2);
  shift_seconds = 10;
  CHECK(mint.find("a.example") == nullptr);
  CHECK(*fetch(mint, "a.example") == *second);  // nothing has changed: nothing is made
  CHECK(mint.find("a.example") == *second);
  CHECK(mint.minted() == 2);
}

TEST_CASE("mint: a key that others can read by now signs nothing more") {
  shift_seconds = 0;
  const Scratch scratch;
  Mint mint(scratch.files(), shifted_now);
  REQUIRE(fetch(mint, "a.example"));
  std::filesystem::permissions(scratch.files().key, std::filesystem::perms(0644));
  shift_seconds = 5;
  CHECK(mint.find("a.example") == nullptr);
  const auto refused = fetch(mint, "a.example");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().find("can be read or written by others") != std::string::npos);
  std::filesystem::permissions(scratch.files().key, std::filesystem::perms(0600));
  shift_seconds = 10;
  CHECK(fetch(mint, "a.example"));
}

TEST_CASE("mint: an expired CA says what to do, and a new one is taken up") {
  shift_seconds = 0;
  const Scratch scratch;
  Mint mint(scratch.files(), shifted_now);
  REQUIRE(fetch(mint, "a.example"));
  shift_seconds = kAuthorityLife / 1s;
  const auto refused = fetch(mint, "a.example");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().find("`sluice ca init --force`") != std::string::npos);
  const auto other = Authority::make_anew(scratch.files(), shifted_now());
  REQUIRE(other);
  const auto leaf = fetch(mint, "a.example");
  REQUIRE(leaf);
  CHECK(signed_by(*leaf, *other));
}

TEST_CASE("mint: a CA that cannot be used is said to everyone who asks") {
  shift_seconds = 0;
  const Scratch scratch;
  Mint mint({scratch.path() + "/none.pem", scratch.path() + "/none.key", false}, shifted_now);
  for (int i = 0; i < 2; ++i) {
    const auto leaf = fetch(mint, "a.example");
    REQUIRE_FALSE(leaf);
    CHECK(leaf.error().find("none.pem cannot be read") != std::string::npos);
  }
}

TEST_CASE("mint: nobody is told after the handle is gone") {
  shift_seconds = 0;
  const Scratch scratch;
  Mint mint(scratch.files(), shifted_now);
  std::function<void()> posted;
  std::promise<void> made;
  bool told = false;
  auto handle = mint.want(
      "a.example",
      [&](std::function<void()> job) {
        posted = std::move(job);
        made.set_value();
      },
      [&](const Result<LeafRef>&) { told = true; });
  made.get_future().wait();
  handle.reset();
  posted();
  CHECK_FALSE(told);
}
