// Damaged files are set aside under another name, said so, never deleted, and never crash a
// process.
#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

constexpr std::size_t kPage = 4096;

// The bytes of a store with enough in it for a tree of several pages.
std::string healthy_store() {
  TempDirectory directory;
  {
    auto opened = open_or_die(directory.path());
    for (int i = 0; i < 400; ++i)
      opened.store->put("host/" + std::to_string(i), std::string(200 + i, 'x'), {});
    for (int i = 0; i < 300; ++i)
      opened.store->append({kNoon, EventKind::transition, "k", "some words"}, {});
    for (int i = 0; i < 100; ++i) opened.store->erase("host/" + std::to_string(i), {});
    if (!put(*opened.store, "last", std::string(20'000, 'y'))) std::abort();
  }
  return slurp(directory.data());
}

std::string aside(const TempDirectory& directory, const std::string& more = "") {
  return directory.data() + ".damaged-20260312T120000Z" + more;
}

}  // namespace

TEST_CASE("damage: a file that is no store any more is set aside whole, and it is said") {
  const std::string healthy = healthy_store();
  REQUIRE(healthy.size() > 20 * kPage);
  struct Row {
    const char* name;
    std::string bytes;
  };
  std::string no_heads = healthy, one_kind = healthy;
  no_heads.replace(0, 2 * kPage, 2 * kPage, '\0');
  for (std::size_t at = 2 * kPage; at < one_kind.size(); at += kPage) one_kind[at + 10] ^= 0x7f;
  const Row rows[] = {
      {"empty", ""},
      {"one byte", "x"},
      {"half a head", healthy.substr(0, kPage / 2)},
      {"one head", healthy.substr(0, kPage)},
      {"heads only", healthy.substr(0, 2 * kPage)},
      {"half of it", healthy.substr(0, healthy.size() / 2)},
      {"without the last page", healthy.substr(0, healthy.size() - kPage)},
      {"zeros", std::string(healthy.size(), '\0')},
      {"heads of zeros", no_heads},
      {"pages of other kinds", one_kind},
      {"another file", "this is no store\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    TempDirectory directory;
    spill(directory.data(), row.bytes);
    {
      auto opened = open_or_die(directory.path());
      CHECK(opened.notice == "the store " + directory.data() +
                                 " was damaged: it was set aside as " + aside(directory) +
                                 " and what it remembered is not in force");
      CHECK(slurp(aside(directory)) == row.bytes);
      CHECK(value_of(*opened.store, "last") == "(none)");
      REQUIRE(put(*opened.store, "k", "v"));
      const auto events = opened.store->events(0, 10);
      REQUIRE(events);
      REQUIRE(events->size() == 1);
      CHECK(events->front().event == Event{kNoon, EventKind::store, "", opened.notice});
    }
    auto opened = open_or_die(directory.path());
    CHECK(opened.notice == "");
    CHECK(value_of(*opened.store, "k") == "v");
  }
}

TEST_CASE("damage: what was set aside is not replaced by the next one of the same second") {
  TempDirectory directory;
  for (const char* text : {"first", "second", "third"}) {
    spill(directory.data(), text);
    open_or_die(directory.path());
  }
  CHECK(slurp(aside(directory)) == "first");
  CHECK(slurp(aside(directory, "-2")) == "second");
  CHECK(slurp(aside(directory, "-3")) == "third");
}

TEST_CASE("damage: a healthy store is left alone, however often it is opened") {
  TempDirectory directory;
  spill(directory.data(), healthy_store());
  for (int i = 0; i < 5; ++i) {
    auto opened = open_or_die(directory.path());
    CHECK(opened.notice == "");
    CHECK(value_of(*opened.store, "last").size() == 20'000);
  }
}

TEST_CASE("damage: while another process has it open, nothing is set aside") {
  TempDirectory directory;
  Child child([&](Line line) {
    line.hear();
    auto opened = open_or_die(directory.path());
    line.tell(opened.notice.empty() && value_of(*opened.store, "k") == "v");
    return 0;
  });
  auto opened = open_or_die(directory.path());
  REQUIRE(put(*opened.store, "k", "v"));
  child.line().tell(0);
  CHECK(child.line().hear() == 1);
}

// LMDB has no sums: what is damaged may pass, and the records' own sums find that. But nobody who
// opens or reads it may crash.
TEST_CASE("damage: flipped bytes anywhere end in a notice, a refusal or a store that can be read") {
  const std::string healthy = healthy_store();
  std::mt19937 random(5);
  int noticed = 0;
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    std::string bytes = healthy;
    // Two of three in the front of a page, where the tree is.
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      const std::size_t at = random() % bytes.size();
      const std::size_t front = at - at % kPage + at % 128;
      bytes[random() % 3 ? front : at] ^= static_cast<char>(1 + random() % 255);
    }
    TempDirectory directory;
    spill(directory.data(), bytes);
    enum : int { fine, set_aside, of_another_version, unreadable };
    Child child([&](Line) -> int {
      LmdbOptions options;
      options.directory = directory.path();
      options.now = kNoon;
      const auto opened = LmdbStore::open(options);
      // Perhaps a later LMDB's, and then not ours to set aside.
      if (!opened && opened.error().find("MDB_VERSION_MISMATCH") != std::string::npos)
        return of_another_version;
      if (!opened) throw std::runtime_error(opened.error());
      std::string after;
      for (bool more = true; more;) {
        const auto page = opened->store->scan("", after, 1000);
        if (!page) return unreadable;
        more = page->more;
        if (!page->entries.empty()) after = page->entries.back().key;
      }
      if (!opened->store->events(0, 10'000)) return unreadable;
      return opened->notice.empty() ? fine : set_aside;
    });
    const int end = child.wait();
    CHECK(end >= fine);
    CHECK(end <= of_another_version);
    if (end != set_aside) continue;
    ++noticed;
    CHECK(slurp(aside(directory)) == bytes);
  }
  CHECK(noticed >= 5);
}
