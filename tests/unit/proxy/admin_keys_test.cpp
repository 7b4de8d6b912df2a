#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "proxy/admin/history.h"
#include "proxy/admin/key_query.h"
#include "proxy/admin/key_table.h"
#include "unit/proxy/fake_source.h"

using namespace sluice;
using testing::FakeSource;

namespace {

KeyRow row(std::string key, Phase phase = Phase::closed, std::uint64_t requests = 0) {
  KeyRow out;
  out.key = std::move(key);
  out.policy = "default";
  out.phase = phase;
  out.counts.success = requests;
  return out;
}

std::string joined(const KeySelection& selection) {
  std::string out;
  for (const KeyRow* row : selection.window) out += (out.empty() ? "" : " ") + row->key;
  return out;
}

Result<KeyQuery> query(std::map<std::string, std::string, std::less<>> parameters) {
  AdminRequest request;
  request.query = std::move(parameters);
  return read_key_query(request);
}

}  // namespace

TEST_CASE("key query: order, filter, search and window") {
  std::vector<KeyRow> rows = {row("a.test", Phase::closed, 10), row("b.test", Phase::open, 5),
                              row("c.test", Phase::half_open, 7), row("d.test", Phase::closed, 20),
                              row("e.test", Phase::open, 1)};
  rows[1].until = UtcTime{300s};
  rows[4].until = UtcTime{200s};
  rows[3].delay = 2s;
  rows[0].held = 3;
  rows[2].policy = "github";
  struct Row {
    const char* name;
    std::map<std::string, std::string, std::less<>> parameters;
    const char* keys;
    std::size_t matched;
  };
  const Row table[] = {
      {"what needs a person first", {}, "e.test b.test c.test a.test d.test", 5},
      {"by key, backwards",
       {{"sort", "key"}, {"order", "desc"}},
       "e.test d.test c.test b.test a.test",
       5},
      {"by requests",
       {{"sort", "requests"}, {"order", "desc"}},
       "d.test a.test c.test b.test e.test",
       5},
      {"by end: those without come last",
       {{"sort", "until"}},
       "e.test b.test a.test c.test d.test",
       5},
      {"only open", {{"state", "open"}}, "e.test b.test", 2},
      {"only slowed", {{"state", "slowed"}}, "d.test", 1},
      {"only waiting", {{"state", "waiting"}}, "a.test", 1},
      {"by a part of the key", {{"q", "C.TE"}}, "c.test", 1},
      {"by the policy", {{"q", "github"}}, "c.test", 1},
      {"nothing found", {{"q", "zzz"}}, "", 0},
      {"a window", {{"sort", "key"}, {"offset", "1"}, {"limit", "2"}}, "b.test c.test", 5},
      {"a window behind the end", {{"offset", "9"}}, "", 5},
      {"a walk", {{"sort", "key"}, {"after", "c.test"}}, "d.test e.test", 2},
  };
  for (const Row& one : table) {
    CAPTURE(one.name);
    const auto asked = query(one.parameters);
    REQUIRE(asked);
    const KeySelection selection = select_keys(rows, *asked);
    CHECK(joined(selection) == one.keys);
    CHECK(selection.matched == one.matched);
  }
}

TEST_CASE("key query: what is not understood is said") {
  CHECK(query({{"sort", "size"}}).error().starts_with("sort is one of"));
  CHECK(query({{"state", "ajar"}}).error().starts_with("state is one of"));
  CHECK(query({{"order", "up"}}).error() == "order is asc or desc");
  CHECK(query({{"limit", "1001"}}).error() == "limit is a whole number, at most 1000");
  CHECK(query({{"limit", "-1"}}).error() == "limit is a whole number, at most 1000");
  CHECK(query({{"offset", "1e3"}}).error() == "offset is a whole number");
  CHECK(query({{"after", "a"}}).error() == "after goes with sort=key only");
}

TEST_CASE("key table: 100,000 keys come in pages, and not again for every question") {
  FakeSource source;
  source.with([](auto& state) {
    for (int i = 0; i < 100'000; ++i) {
      std::string key = "host-" + std::to_string(i) + ".test";
      KeyDetail detail = testing::closed_key(key, 1);
      state.keys[std::move(key)] = std::move(detail);
    }
  });
  KeyTable table(source);
  CHECK(table.rows().size() == 100'000);
  CHECK(source.with([](auto& state) { return state.pages_read; }) == 100);
  for (int i = 0; i < 100; ++i) CHECK(table.rows().size() == 100'000);
  CHECK(source.with([](auto& state) { return state.pages_read; }) == 100);
  table.expire();
  source.with([](auto& state) { state.failing = "the store is gone"; });
  CHECK(table.rows().empty());
  CHECK(table.problem() == "the store is gone");
}

TEST_CASE("history: minutes are what the counters grew by, and the last one is still running") {
  History history;
  std::vector<KeyRow> rows = {row("old.test", Phase::closed, 1000)};
  Totals totals;
  totals.outcomes.success = 1000;
  history.sample(rows, totals);
  rows[0].counts.success = 1010;
  rows[0].counts.refused = 2;
  rows[0].delay = 1500ms;
  rows.push_back(row("new.test", Phase::closed, 4));
  totals.outcomes.success = 1014;
  history.sample(rows, totals);
  rows[0].counts.rate_limited = 3;
  const History::Series old = history.of(rows[0]);
  CHECK(old.requests == std::vector<std::uint32_t>{10, 3});
  CHECK(old.refused == std::vector<std::uint32_t>{2, 0});
  CHECK(old.limited == std::vector<std::uint32_t>{0, 3});
  CHECK(old.delay_ms == std::vector<std::uint32_t>{1500, 1500});
  CHECK(history.of(rows[1]).requests == std::vector<std::uint32_t>{4, 0});
  CHECK(history.of_all(totals).requests.back() == 0);
  const KeyRow newest = row("newest.test", Phase::closed, 9);
  CHECK(history.of(newest).requests == std::vector<std::uint32_t>{9});
}

TEST_CASE("history: an hour is kept, of a bounded number of keys") {
  History history;
  std::vector<KeyRow> rows;
  for (std::size_t i = 0; i < History::kKeys + 500; ++i)
    rows.push_back(row("host-" + std::to_string(i), Phase::closed, i));
  for (int minute = 0; minute < 100; ++minute) {
    for (KeyRow& one : rows) one.counts.success += 1;
    history.sample(rows, {});
  }
  CHECK(history.of(rows.back()).requests.size() == History::kMinutes);
  CHECK(history.of(rows.back()).requests.front() == 1);
  CHECK(history.of(rows.front()).requests.empty());
}

TEST_CASE("history: a counter that began anew does not become a huge number") {
  History history;
  std::vector<KeyRow> rows = {row("a.test", Phase::closed, 500)};
  history.sample(rows, {});
  rows[0].counts.success = 7;
  CHECK(history.of(rows[0]).requests == std::vector<std::uint32_t>{7});
}
