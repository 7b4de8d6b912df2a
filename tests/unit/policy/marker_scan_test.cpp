#include "policy/marker_scan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace sluice;

namespace {

using Set = std::shared_ptr<const MarkerSet>;
constexpr std::size_t everything = ~std::size_t{0};

Set set_of(std::vector<BodyMarker> markers) {
  auto set = MarkerSet::build(std::move(markers));
  REQUIRE(set);
  return *set;
}

Set texts(std::initializer_list<const char*> list) {
  std::vector<BodyMarker> markers;
  for (const char* text : list) markers.push_back({.text = text});
  return set_of(std::move(markers));
}

// Fed in pieces of that size; -1: nothing found.
int find(const Set& set, std::string_view body, std::size_t piece, std::uint16_t status = 200,
         std::size_t limit = everything) {
  MarkerScan scan(set, status, limit);
  for (std::size_t i = 0; i < body.size(); i += piece) {
    if (const auto found = scan.feed(body.substr(i, piece))) {
      CHECK(scan.done());
      CHECK_FALSE(scan.feed(body));  // once
      return static_cast<int>(*found);
    }
  }
  return -1;
}

// The marker whose end comes first; of several ending there the longest.
int find_slowly(const std::vector<std::string>& texts, const std::string& body) {
  const auto fold = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
  };
  const std::string folded = fold(body);
  for (std::size_t end = 1; end <= body.size(); ++end) {
    int best = -1;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string text = fold(texts[i]);
      if (!folded.substr(0, end).ends_with(text)) continue;
      if (best < 0 || text.size() > texts[static_cast<std::size_t>(best)].size()) {
        best = static_cast<int>(i);
      }
    }
    if (best >= 0) return best;
  }
  return -1;
}

}  // namespace

TEST_CASE("marker scan: whole, byte by byte, and across any boundary") {
  const Set set = texts({"not a bot", "px-captcha", "_cf_chl_opt"});
  const std::string padding(100, 'x');
  struct Row {
    const char* body;
    int found;
  };
  const Row rows[] = {
      {"", -1},
      {"nothing to see here, not a bo", -1},
      {"you're not a bot", 0},
      {"YOU'RE NOT A BOT, Ok", 0},
      {"<div id=\"PX-captcha\">", 1},
      {"window._cf_chl_opt={", 2},
      {"not a not a bot", 0},
      {"px-px-captcha", 1},
      {"__cf_chl_op_cf_chl_opt", 2},
  };
  for (const Row& row : rows) {
    CAPTURE(row.body);
    for (std::size_t piece = 1; piece < 20; ++piece) {
      CHECK(find(set, row.body, piece) == row.found);
      CHECK(find(set, padding + row.body + padding, piece) == row.found);
    }
    CHECK(find(set, padding + row.body + padding, everything) == row.found);
  }
}

TEST_CASE("marker scan: one text inside another, and texts of one byte") {
  const Set set = texts({"abcde", "bcd", "zz", "Q"});
  CHECK(find(set, "..abcd", 1) == 1);
  CHECK(find(set, "..abcde", everything) == 1);           // the shorter one ends first
  CHECK(find(texts({"abcd", "bcd"}), "..abcd", 1) == 0);  // of two that end together, the longer
  CHECK(find(set, std::string(50, '.') + "q", everything) == 3);
  CHECK(find(set, std::string(50, '.') + "zZ", everything) == 2);
}

TEST_CASE("marker scan: only with the statuses it is for") {
  const Set set = set_of({{.text = "g-recaptcha", .status = {403, 429}}, {.text = "blocked"}});
  CHECK(find(set, "g-recaptcha", 4, 200) == -1);
  CHECK(find(set, "g-recaptcha", 4, 403) == 0);
  CHECK(find(set, "g-recaptcha then blocked", 4, 200) == 1);
  MarkerScan idle(set_of({{.text = "g-recaptcha", .status = {403}}}), 200, everything);
  CHECK(idle.done());
}

TEST_CASE("marker scan: a text that counts only after another") {
  const Set set = set_of({{.text = "Reference #", .after = "Access Denied"}});
  CHECK(find(set, "Reference #18", 3) == -1);
  CHECK(find(set, "Reference #18 Access Denied", 3) == -1);
  CHECK(find(set, "<h1>access denied</h1> ... reference #18", 3) == 0);
}

TEST_CASE("marker scan: the limit counts bytes looked at") {
  const Set set = texts({"bot"});
  const std::string body = std::string(61, '.') + "bot";
  CHECK(find(set, body, 7, 200, 64) == 0);
  CHECK(find(set, body, 7, 200, 63) == -1);
  MarkerScan scan(set, 200, 4);
  scan.feed("....");
  CHECK(scan.done());
  CHECK_FALSE(MarkerScan().feed("bot"));
}

TEST_CASE("marker scan: sets that are too large are refused with a reason") {
  CHECK(MarkerSet::build({{.text = ""}}).error() == "a body marker needs a text");
  CHECK(MarkerSet::build({{.text = std::string(9000, 'x')}}).error() ==
        "the body markers are longer than 8 KiB together");
  CHECK(MarkerSet::build({}));
  CHECK(find(set_of({}), "anything", 3) == -1);
}

TEST_CASE("marker scan: a text is found wherever it stands among others that are none") {
  const Set set = texts({"wall"});
  for (std::size_t size = 4; size <= 140; ++size) {
    for (std::size_t at = 0; at + 4 <= size; ++at) {
      CAPTURE(size);
      CAPTURE(at);
      std::string body(size, '.');
      body.replace(at, 4, "WALL");
      REQUIRE(find(set, body, size) == 0);
      REQUIRE(find(set, body.substr(0, at + 3), size) == -1);
    }
  }
}

TEST_CASE("marker scan: agrees with a slow search on random bodies") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return random() % n; };
  const auto word = [&](std::size_t most, const char* letters, std::size_t n) {
    std::string text;
    for (std::size_t i = 1 + below(most); i > 0; --i) text += letters[below(n)];
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> list;
    std::vector<BodyMarker> markers;
    for (std::size_t i = 1 + below(12); i > 0; --i) {
      const auto text = word(6, "aAbBc-\xff", 7);
      const auto same = [&](const std::string& other) {
        return find_slowly({other}, text) == 0 && other.size() == text.size();
      };
      if (std::any_of(list.begin(), list.end(), same)) continue;
      list.push_back(text);
      markers.push_back({.text = text});
    }
    const Set set = set_of(markers);
    const auto body = word(80, "aAbBc-\xff....", 11);
    CAPTURE(body);
    CHECK(find(set, body, 1 + below(90)) == find_slowly(list, body));
  }
}
