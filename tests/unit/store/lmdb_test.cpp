// LMDB as processes share it: what one writes the others read, maps that grow, and places of dead
// readers. Children are started while this process has no store open.
#include "store/lmdb.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>
#include <vector>

#include "unit/store/disk.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

TEST_CASE("lmdb: what was answered is there after a restart, events too") {
  TempDirectory directory;
  {
    auto opened = open_or_die(directory.path());
    CHECK(opened.notice == "");
    REQUIRE(put(*opened.store, "k", "v"));
    opened.store->append({kNoon, EventKind::budget, "k", "half of it is spent"}, {});
  }  // the end of a store waits for its writes
  auto opened = open_or_die(directory.path());
  CHECK(opened.notice == "");
  CHECK(value_of(*opened.store, "k") == "v");
  const auto events = opened.store->events(0, 10);
  REQUIRE(events);
  REQUIRE(events->size() == 1);
  CHECK(events->front().event.text == "half of it is spent");
  REQUIRE(wait_for([&](Completion done) { opened.store->append({}, std::move(done)); }));
  CHECK(opened.store->events(1, 10)->front().sequence == 2);
}

TEST_CASE("lmdb: the files are for the owner only") {
  TempDirectory directory;
  auto opened = open_or_die(directory.path() + "/deep/er");
  struct stat info {};
  REQUIRE(::stat((directory.path() + "/deep/er/data.mdb").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  REQUIRE(::stat((directory.path() + "/deep").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
}

TEST_CASE("lmdb: many writers share a sync") {
  TempDirectory directory;
  auto opened = open_or_die(directory.path());
  WatchedDisk disk(directory.data());
  constexpr int kWrites = 2000;
  std::atomic<int> answered{0};
  for (int i = 0; i < kWrites; ++i)
    opened.store->put("k" + std::to_string(i), "v",
                      {{}, [&](const Result<std::uint64_t>& r) { answered += r ? 1 : 0; }});
  REQUIRE(put(*opened.store, "last", ""));
  CHECK(answered == kWrites);
  CHECK(disk.syncs() >= 1);
  CHECK(disk.syncs() <= kWrites / 4);
}

TEST_CASE("lmdb: no answer before the sync") {
  TempDirectory directory;
  auto opened = open_or_die(directory.path());
  WatchedDisk disk(directory.data());
  for (int i = 0; i < 20; ++i) {
    const std::size_t before = disk.syncs();
    REQUIRE(put(*opened.store, "k", std::to_string(i)));
    REQUIRE(disk.syncs() > before);
  }
}

TEST_CASE("lmdb: a change by another process is seen at once, and moves the version") {
  TempDirectory directory;
  Child other([&](Line line) {
    line.hear();  // until we have opened it, so that it is shared live
    auto opened = open_or_die(directory.path());
    line.tell(1);
    while (const auto value = line.hear()) {
      if (!put(*opened.store, "k", std::to_string(*value))) return 1;
      line.tell(*value);
    }
    return 0;
  });
  auto opened = open_or_die(directory.path());
  REQUIRE(put(*opened.store, "k", "0"));
  other.line().tell(0);
  REQUIRE(other.line().hear());
  std::uint64_t version = opened.store->get("k")->version;
  CHECK(opened.store->version() == version);
  for (std::uint64_t value = 1; value <= 20; ++value) {
    other.line().tell(value);
    REQUIRE(other.line().hear() == value);
    CHECK(opened.store->version() != version);
    const auto read = opened.store->get("k");
    REQUIRE(read);
    CHECK(read->value == std::to_string(value));
    version = read->version;
    CHECK(opened.store->version() == version);
    // Our own writes in between hide nothing of the other's, and are no news themselves; nor is
    // what changes nothing.
    for (std::uint64_t own = 0; own < value % 3; ++own) REQUIRE(put(*opened.store, "own", "v"));
    REQUIRE(wait_for([&](Completion done) {
      opened.store->compare_and_set("k", "never", "was", std::move(done));
    }));
    CHECK(opened.store->version() == version);
    CHECK(opened.store->get("k")->version == version);
  }
}

TEST_CASE("lmdb: a small map grows until everything fits") {
  TempDirectory directory;
  constexpr std::size_t kSmall = 128 * 1024;
  {
    auto opened = open_or_die(directory.path(), kSmall);
    for (int i = 0; i < 200; ++i)
      REQUIRE(put(*opened.store, "k" + std::to_string(i), std::string(20'000, 'x')));
    CHECK(opened.store->health().ok);
  }
  CHECK(std::filesystem::file_size(directory.data()) > 16 * kSmall);
  auto opened = open_or_die(directory.path(), kSmall);
  CHECK(opened.notice == "");
  for (int i = 0; i < 200; ++i)
    REQUIRE(value_of(*opened.store, "k" + std::to_string(i)).size() == 20'000);
}

TEST_CASE("lmdb: the map grows under readers of all threads") {
  TempDirectory directory;
  auto opened = open_or_die(directory.path(), 128 * 1024);
  Store& store = *opened.store;
  REQUIRE(put(store, "k", "v"));
  std::atomic<bool> writing{true};
  std::atomic<int> odd{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      while (writing)
        if (value_of(store, "k") != "v" || store.version() == 0) ++odd;
    });
  }
  for (int i = 0; i < 100; ++i)
    REQUIRE(put(store, "big" + std::to_string(i), std::string(30'000, 'x')));
  writing = false;
  for (std::thread& reader : readers) reader.join();
  CHECK(odd == 0);
}

TEST_CASE("lmdb: a map that another process made larger is taken over by reads and by writes") {
  TempDirectory directory;
  constexpr std::size_t kSmall = 128 * 1024;
  Child other([&](Line line) {
    line.hear();
    auto opened = open_or_die(directory.path(), kSmall);
    for (std::uint64_t round = 0;; ++round) {
      for (int i = 0; i < 20; ++i)
        if (!put(*opened.store, "big" + std::to_string(round * 20 + i), std::string(20'000, 'x')))
          return 1;
      line.tell(round);
      if (!line.hear()) return 0;
    }
  });
  auto opened = open_or_die(directory.path(), kSmall);
  Store& store = *opened.store;
  REQUIRE(put(store, "k", "v"));
  other.line().tell(0);
  REQUIRE(other.line().hear() == 0);
  CHECK(value_of(store, "k") == "v");  // the first thing after it grew is a read
  CHECK(value_of(store, "big19").size() == 20'000);
  other.line().tell(0);
  REQUIRE(other.line().hear() == 1);
  CHECK(put(store, "k", "w"));  // and now a write
  CHECK(value_of(store, "big39").size() == 20'000);
  CHECK(store.health().ok);
}

TEST_CASE("lmdb: a store that may not grow any more says so and goes on being read") {
  TempDirectory directory;
  LmdbOptions options;
  options.directory = directory.path();
  options.map_size = options.max_map_size = 256 * 1024;
  auto opened = LmdbStore::open(options);
  REQUIRE(opened);
  Store& store = *opened->store;
  REQUIRE(put(store, "k", "v"));
  Result<std::uint64_t> result = std::uint64_t{0};
  int written = 0;
  while (result && written < 100) {
    result = put(store, "big" + std::to_string(written), std::string(30'000, 'x'));
    if (result) ++written;
  }
  REQUIRE(!result);
  CHECK(result.error().find("the store cannot be written: MDB_MAP_FULL") == 0);
  CHECK(written >= 2);
  CHECK(store.health().sentence == result.error());
  CHECK(value_of(store, "k") == "v");
  // What makes room can still be written, and then all is well again.
  for (int i = 0; i < written; ++i)
    REQUIRE(wait_for(
        [&](Completion done) { store.erase("big" + std::to_string(i), std::move(done)); }));
  CHECK(put(store, "k", "w"));
  CHECK(store.health().ok);
}

TEST_CASE("lmdb: twenty processes on one directory, each sees what all have written") {
  TempDirectory directory;
  constexpr std::uint64_t kProcesses = 20, kAdds = 25;
  std::vector<std::unique_ptr<Child>> children;
  for (std::uint64_t n = 0; n < kProcesses; ++n) {
    children.push_back(std::make_unique<Child>([&](Line line) {
      auto opened = open_or_die(directory.path());
      line.tell(n);
      line.hear();  // all at once
      for (std::uint64_t i = 0; i < kAdds; ++i) {
        const auto added = wait_for([&](Completion done) {
          opened.store->update(
              "sum",
              [](std::optional<std::string_view> current) {
                const int sum = current ? std::stoi(std::string(*current)) : 0;
                return Change{Change::Kind::put, std::to_string(sum + 1), 0};
              },
              std::move(done));
        });
        if (!added) return 1;
      }
      return 0;
    }));
  }
  for (const auto& child : children) REQUIRE(child->line().hear());
  for (const auto& child : children) child->line().tell(1);
  for (const auto& child : children) CHECK(child->wait() == 0);
  auto opened = open_or_die(directory.path());
  CHECK(opened.notice == "");
  CHECK(value_of(*opened.store, "sum") == std::to_string(kProcesses * kAdds));
}

TEST_CASE("lmdb: a process that dies inside a read or a write hinders nobody") {
  TempDirectory directory;
  for (int round = 0; round < 30; ++round) {
    Child child([&](Line line) {
      auto opened = open_or_die(directory.path());
      line.tell(1);
      for (int i = 0;; ++i) {
        opened.store->put("k" + std::to_string(i % 50), std::string(3000, 'x'), {});
        value_of(*opened.store, "k1");
      }
      return 0;
    });
    REQUIRE(child.line().hear());
    child.kill();
  }
  auto opened = open_or_die(directory.path());
  CHECK(opened.notice == "");
  CHECK(put(*opened.store, "k", "v"));
}

TEST_CASE("lmdb: killed processes do not use up the reader table") {
  TempDirectory directory;
  // Each leaves its places in the table; without a check it would be full after 22 of them.
  for (int round = 0; round < 26; ++round) {
    Child child([&](Line line) {
      auto opened = open_or_die(directory.path());
      std::vector<std::thread> threads;
      for (int t = 0; t < 64; ++t) threads.emplace_back([&] { value_of(*opened.store, "k"); });
      for (std::thread& thread : threads) thread.join();
      line.tell(1);
      line.hear();
      return 0;
    });
    REQUIRE(child.line().hear());
    child.kill();
  }
  auto opened = open_or_die(directory.path());
  CHECK(value_of(*opened.store, "k") == "(none)");
}
