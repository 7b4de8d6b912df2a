#include "proxy/known_keys.h"

#include <doctest/doctest.h>

#include "store/memory.h"

using namespace sluice;

namespace {

const ClockPair kNow{Instant{1h}, UtcTime{1000h}, 7};

std::vector<std::string> names(const Result<std::vector<KnownKey>>& keys) {
  std::vector<std::string> out;
  REQUIRE(keys);
  for (const KnownKey& one : *keys) out.push_back(one.key);
  return out;
}

struct Keys {
  MemoryStore store;
  explicit Keys(std::initializer_list<const char*> keys) {
    for (const char* key : keys) save_host(store, key, {}, kNow, {});
  }
  std::vector<std::string> of(const std::string& named) {
    return names(find_keys(store, named, kNow, 1h));
  }
};

}  // namespace

TEST_CASE("known keys: a bare host is every key of that host and of no other") {
  Keys keys{"a.test",         "a.test#c1", "a.test-b", "a.test.b", "a.test:8080",
            "a.test:8080#c2", "a.tes",     "b.test",   "policy/a"};
  using Names = std::vector<std::string>;
  CHECK(keys.of("a.test") == Names{"a.test", "a.test#c1", "a.test:8080", "a.test:8080#c2"});
  CHECK(keys.of("a.test:8080") == Names{"a.test:8080", "a.test:8080#c2"});
  CHECK(keys.of("a.test:80") == Names{});
  CHECK(keys.of("a.test#c1") == Names{"a.test#c1"});
  CHECK(keys.of("policy/a") == Names{"policy/a"});
  CHECK(names(all_keys(keys.store, kNow, 1h)).size() == 9);
}

TEST_CASE("known keys: an address in brackets has its port behind them") {
  Keys keys{"[::1]", "[::1]:8080", "[::1:8080]"};
  CHECK(keys.of("[::1]").size() == 2);
  CHECK(keys_above("[::1]")[0].empty());
  CHECK(keys_above("[::1]:8080#c")[0] == "[::1]:8080");
  CHECK(keys_above("[::1]:8080#c")[1] == "[::1]");
}

TEST_CASE("known keys: what stands above a key") {
  CHECK(keys_above("a.test")[0].empty());
  CHECK(keys_above("a.test:1")[0] == "a.test");
  CHECK(keys_above("a.test#c")[0] == "a.test");
  CHECK(keys_above("a.test#c")[1].empty());
  CHECK(keys_above("policy/a:b#c")[0].empty());
}
