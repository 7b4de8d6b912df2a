// What every engine promises, asked of each of them (store/store.h).
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

namespace {

struct InMemory {
  MemoryStore store;
  Store& operator*() { return store; }
};

struct OnDisk {
  TempDirectory directory;
  OpenedStore opened = open_or_die(directory.path());
  Store& operator*() { return *opened.store; }
};

std::uint64_t compare_and_set(Store& store, const std::string& key,
                              std::optional<std::string> expected,
                              std::optional<std::string> desired) {
  const auto result = wait_for(
      [&](Completion done) { store.compare_and_set(key, expected, desired, std::move(done)); });
  REQUIRE(result);
  return *result;
}

std::uint64_t erase(Store& store, const std::string& key) {
  const auto result = wait_for([&](Completion done) { store.erase(key, std::move(done)); });
  REQUIRE(result);
  return *result;
}

void append(Store& store, const Event& event) {
  const auto result = wait_for([&](Completion done) { store.append(event, std::move(done)); });
  REQUIRE(result);
  CHECK(*result == 0);
}

// What an edit of "k" that makes this change has seen.
std::string edit_of(Store& store, Change::Kind kind, const std::string& value) {
  std::string seen;
  const auto result = wait_for([&](Completion done) {
    store.update(
        "k",
        [&seen, kind, value](std::optional<std::string_view> current) {
          seen = current.value_or("(none)");
          return Change{kind, value, 7};
        },
        std::move(done));
  });
  REQUIRE(result);
  CHECK(*result == 7);
  return seen;
}

std::string keys_of(const Page& page) {
  std::string keys;
  for (const Entry& entry : page.entries) keys += entry.key + "=" + entry.value + " ";
  return keys + (page.more ? "…" : ".");
}

}  // namespace

TEST_CASE_TEMPLATE("store: a value is read back, replaced and erased", Engine, InMemory, OnDisk) {
  Engine engine;
  Store& store = *engine;
  CHECK(value_of(store, "a") == "(none)");
  CHECK(*put(store, "a", "1") == 1);
  CHECK(value_of(store, "a") == "1");
  CHECK(*put(store, "a", std::string("\0\xff", 2)) == 1);
  CHECK(value_of(store, "a") == std::string("\0\xff", 2));
  CHECK(*put(store, "a", "") == 1);
  CHECK(value_of(store, "a") == "");
  CHECK(erase(store, "a") == 1);
  CHECK(erase(store, "a") == 0);
  CHECK(value_of(store, "a") == "(none)");
  CHECK(store.health().ok);
}

TEST_CASE_TEMPLATE("store: keys and values beyond the bounds are refused", Engine, InMemory,
                   OnDisk) {
  Engine engine;
  Store& store = *engine;
  const std::string longest_key(kMaxKeySize, 'k'), longest_value(kMaxValueSize, 'v');
  CHECK(put(store, longest_key, longest_value));
  CHECK(value_of(store, longest_key) == longest_value);
  CHECK(put(store, "", "v").error() == "a key in the store cannot be empty");
  CHECK(put(store, longest_key + "k", "v").error() ==
        "a key of 512 bytes is too long for the store");
  CHECK(put(store, "k", longest_value + "v").error() ==
        "a value of 65537 bytes is too long for the store");
  CHECK(value_of(store, "k") == "(none)");
  CHECK(store.health().ok);
}

TEST_CASE_TEMPLATE("store: an edit sees the value and may keep it", Engine, InMemory, OnDisk) {
  Engine engine;
  Store& store = *engine;
  const auto edit = [&](Change::Kind kind, const char* value) {
    return edit_of(store, kind, value);
  };
  CHECK(edit(Change::Kind::keep, "ignored") == "(none)");
  CHECK(edit(Change::Kind::erase, "") == "(none)");
  CHECK(edit(Change::Kind::put, "one") == "(none)");
  CHECK(edit(Change::Kind::keep, "ignored") == "one");
  CHECK(edit(Change::Kind::erase, "") == "one");
  CHECK(value_of(store, "k") == "(none)");
}

TEST_CASE_TEMPLATE("store: compare and set", Engine, InMemory, OnDisk) {
  struct Row {
    const char* name;
    std::optional<std::string> before, expected, desired;
    std::uint64_t answer;
    const char* after;
  };
  const Row rows[] = {
      {"nothing there, nothing expected", {}, {}, "new", 1, "new"},
      {"nothing there, something expected", {}, "old", "new", 0, "(none)"},
      {"something there, nothing expected", "old", {}, "new", 0, "old"},
      {"as expected", "old", "old", "new", 1, "new"},
      {"not as expected", "old", "older", "new", 0, "old"},
      {"as expected, erased", "old", "old", {}, 1, "(none)"},
      {"a prefix is not the value", "old", "ol", "new", 0, "old"},
      {"an empty value is not no value", "", {}, "new", 0, ""},
  };
  Engine engine;
  Store& store = *engine;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    if (row.before) {
      REQUIRE(put(store, "k", *row.before));
    } else {
      erase(store, "k");
    }
    CHECK(compare_and_set(store, "k", row.expected, row.desired) == row.answer);
    CHECK(value_of(store, "k") == row.after);
  }
}

TEST_CASE_TEMPLATE("store: of many who compare and set, one wins each round", Engine, InMemory,
                   OnDisk) {
  Engine engine;
  Store& store = *engine;
  constexpr int kThreads = 8, kRounds = 40;
  REQUIRE(put(store, "turn", "0"));
  std::atomic<int> wins{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const auto won = wait_for([&](Completion done) {
          store.compare_and_set("turn", std::to_string(round), std::to_string(round + 1),
                                std::move(done));
        });
        if (won && *won == 1) ++wins;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wins == kRounds);
  CHECK(value_of(store, "turn") == std::to_string(kRounds));
}

TEST_CASE_TEMPLATE("store: the writes of one thread are made in its order", Engine, InMemory,
                   OnDisk) {
  Engine engine;
  Store& store = *engine;
  std::string order;
  for (char c = 'a'; c <= 'z'; ++c) {
    store.update("k",
                 [c](std::optional<std::string_view> current) {
                   return Change{Change::Kind::put, std::string(current.value_or("")) + c, 0};
                 },
                 {{}, [&order, c](const Result<std::uint64_t>&) { order += c; }});
  }
  REQUIRE(put(store, "last", ""));
  CHECK(value_of(store, "k") == "abcdefghijklmnopqrstuvwxyz");
  CHECK(order == "abcdefghijklmnopqrstuvwxyz");
}

TEST_CASE_TEMPLATE("store: a completion runs where it asked to", Engine, InMemory, OnDisk) {
  Engine engine;
  Store& store = *engine;
  std::vector<std::function<void()>> loop;  // filled on the engine's thread, then read on ours
  std::optional<std::uint64_t> answer;
  Completion done{[&](std::function<void()> task) { loop.push_back(std::move(task)); },
                  [&](const Result<std::uint64_t>& result) { answer = *result; }};
  store.put("k", "v", std::move(done));
  REQUIRE(put(store, "next", ""));  // writes are answered in order: the first one is posted by now
  REQUIRE(loop.size() == 1);
  CHECK(!answer);
  loop[0]();
  CHECK(answer == 1);
}

TEST_CASE_TEMPLATE("store: scan gives pages in order of the keys", Engine, InMemory, OnDisk) {
  Engine engine;
  Store& store = *engine;
  for (const char* key : {"b/2", "a", "b/1", "b/3", "b", "c", "b0"}) REQUIRE(put(store, key, "v"));
  struct Row {
    const char *prefix, *after;
    std::size_t limit;
    const char* page;
  };
  const Row rows[] = {
      {"", "", 10, "a=v b=v b/1=v b/2=v b/3=v b0=v c=v ."},
      {"b/", "", 10, "b/1=v b/2=v b/3=v ."},
      {"b/", "", 2, "b/1=v b/2=v …"},
      {"b/", "b/2", 2, "b/3=v ."},
      {"b/", "b/3", 2, "."},
      {"b/", "a", 2, "b/1=v b/2=v …"},     // before the prefix
      {"b/", "z", 2, "."},                 // after it
      {"b/", "b/10", 2, "b/2=v b/3=v ."},  // a key that is gone
      {"", "b", 2, "b/1=v b/2=v …"},
      {"x", "", 10, "."},
      {"b/", "", 3, "b/1=v b/2=v b/3=v ."},  // exactly full is not more
  };
  for (const Row& row : rows) {
    CAPTURE(row.prefix);
    CAPTURE(row.after);
    CAPTURE(row.limit);
    const auto page = store.scan(row.prefix, row.after, row.limit);
    REQUIRE(page);
    CHECK(keys_of(*page) == row.page);
  }
}

TEST_CASE_TEMPLATE("store: page after page finds every key once", Engine, InMemory, OnDisk) {
  Engine engine;
  Store& store = *engine;
  constexpr std::size_t kCount = 2500;
  for (std::size_t i = 0; i < kCount; ++i) {
    std::string key = "k" + std::to_string(i);
    key.resize(i % 50 == 0 ? kMaxKeySize : key.size(), '~');
    store.put(std::move(key), "v", {});
  }
  REQUIRE(put(store, "other", "v"));
  for (const std::size_t limit : {std::size_t{7}, kMaxPageEntries, std::size_t{1'000'000}}) {
    CAPTURE(limit);
    std::string after;
    std::size_t found = 0;
    bool more = true, ordered = true;
    while (more) {
      const auto page = store.scan("k", after, limit);
      REQUIRE(page);
      REQUIRE(page->entries.size() <= std::min(limit, kMaxPageEntries));
      for (const Entry& entry : page->entries) {
        ordered = ordered && after < entry.key;
        after = entry.key;
        ++found;
      }
      more = page->more;
    }
    CHECK(ordered);
    CHECK(found == kCount);
  }
}

TEST_CASE_TEMPLATE("store: the version moves with what is news, not with one's own writes or reads",
                   Engine, InMemory, OnDisk) {
  Engine engine;
  Store& store = *engine;
  REQUIRE(put(store, "k", "v"));
  const auto before = store.get("k");
  REQUIRE(before);
  CHECK(store.version() == before->version);
  REQUIRE(store.scan("", "", 10));
  REQUIRE(store.events(0, 10));
  CHECK(store.version() == before->version);

  REQUIRE(put(store, "other", "v"));
  append(store, {kNoon, EventKind::alert, "k", "t"});
  CHECK(store.version() == before->version);
  CHECK(store.get("other")->version == before->version);

  for (const char* value : {"a", "b"}) {
    const std::uint64_t last = store.version();
    const auto written = wait_for([&](const Completion& done) {
      store.update(
          "k",
          [&](std::optional<std::string_view>) {
            return Change{Change::Kind::put, value, 1, true};
          },
          done);
    });
    REQUIRE(written);
    CHECK(store.version() != last);
    CHECK(store.get("k")->version == store.version());
    REQUIRE(put(store, "other", value));  // and it does not go back
    CHECK(store.version() != last);
    CHECK(store.get("k")->version == store.version());
  }
}

TEST_CASE_TEMPLATE("store: events are numbered from 1, oldest first", Engine, InMemory, OnDisk) {
  Engine engine;
  Store& store = *engine;
  REQUIRE(store.events(0, 10)->empty());
  for (int i = 1; i <= 5; ++i)
    append(store, {kNoon + std::chrono::seconds(i), EventKind::operator_act,
                   "key" + std::to_string(i), "text"});
  const auto all = store.events(0, 10);
  REQUIRE(all);
  REQUIRE(all->size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK((*all)[i].sequence == i + 1);
    CHECK((*all)[i].event.key == "key" + std::to_string(i + 1));
    CHECK((*all)[i].event.at == kNoon + std::chrono::seconds(i + 1));
    CHECK((*all)[i].event.kind == EventKind::operator_act);
  }
  const auto some = store.events(2, 2);
  REQUIRE(some);
  REQUIRE(some->size() == 2);
  CHECK(some->front().sequence == 3);
  CHECK(store.events(5, 10)->empty());
  CHECK(store.events(UINT64_MAX, 10)->empty());
  // They are no records.
  CHECK(store.scan("", "", 10)->entries.empty());
}

TEST_CASE_TEMPLATE("store: a long event is cut", Engine, InMemory, OnDisk) {
  Engine engine;
  Store& store = *engine;
  append(store, {kNoon, EventKind::alert, std::string(5000, 'k'), std::string(5000, 't')});
  const auto events = store.events(0, 1);
  REQUIRE(events);
  REQUIRE(events->size() == 1);
  CHECK(events->front().event.key == std::string(kMaxEventText, 'k'));
  CHECK(events->front().event.text == std::string(kMaxEventText, 't'));
}

TEST_CASE_TEMPLATE("store: the ring holds 10,000 events and no number comes twice", Engine,
                   InMemory, OnDisk) {
  Engine engine;
  Store& store = *engine;
  constexpr std::uint64_t kTotal = 10'250;
  for (std::uint64_t i = 1; i <= kTotal; ++i)
    store.append({kNoon, EventKind::transition, std::to_string(i), ""}, {});
  REQUIRE(put(store, "last", ""));
  const auto events = store.events(0, 1'000'000);
  REQUIRE(events);
  REQUIRE(events->size() == kMaxEvents);
  bool right = true;
  for (std::size_t i = 0; i < events->size(); ++i) {
    const std::uint64_t expected = kTotal - kMaxEvents + 1 + i;
    right = right && (*events)[i].sequence == expected &&
            (*events)[i].event.key == std::to_string(expected);
  }
  CHECK(right);
}

TEST_CASE_TEMPLATE("store: any thread reads while any thread writes", Engine, InMemory, OnDisk) {
  Engine engine;
  Store& store = *engine;
  REQUIRE(put(store, "a", "0"));
  std::atomic<bool> writing{true};
  std::atomic<int> odd{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 6; ++t) {
    readers.emplace_back([&] {
      std::uint64_t last = 0;
      while (writing) {
        const auto read = store.get("a");
        const auto page = store.scan("", "", 10);
        if (!read || !page || !store.events(0, 10)) ++odd;
        const std::uint64_t now = std::stoull(value_of(store, "a"));
        if (now < last) ++odd;  // a reader never goes back in time
        last = now;
      }
    });
  }
  for (int i = 1; i <= 200; ++i) {
    store.append({kNoon, EventKind::alert, "a", "t"}, {});
    REQUIRE(put(store, "a", std::to_string(i)));
  }
  writing = false;
  for (std::thread& reader : readers) reader.join();
  CHECK(odd == 0);
}
