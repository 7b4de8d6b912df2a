#include "policy/diagnostic.h"

#include <doctest/doctest.h>

#include <string>

using namespace sluice;

TEST_CASE("diagnostic: place, message, line and caret") {
  CHECK(render({{"a.toml", 3, 9, "max_wait = 15"}, "it is wrong"}) ==
        "a.toml:3:9: it is wrong\n"
        "  max_wait = 15\n"
        "          ^\n");
  CHECK(render({{"a.toml", 1, 1, ""}, "cannot be read"}) == "a.toml:1:1: cannot be read\n");
  CHECK(render({{"a.toml", 1, 6, "x = 1"}, "the line is too short"}) ==
        "a.toml:1:6: the line is too short\n"
        "  x = 1\n"
        "       ^\n");
}

TEST_CASE("diagnostic: the caret counts characters, not bytes, and tabs as one") {
  CHECK(render({{"a", 1, 8, "ключ = 1"}, "m"}) == "a:1:8: m\n  ключ = 1\n         ^\n");
  CHECK(render({{"a", 1, 3, "\t\tx"}, "m"}) == "a:1:3: m\n    x\n    ^\n");
}

TEST_CASE("diagnostic: what a terminal would act on is not shown") {
  CHECK(render({{"a", 1, 1, "\x1b[31mred\x7f"}, "m"}) == "a:1:1: m\n  ?[31mred?\n  ^\n");
}

TEST_CASE("diagnostic: a long line is cut around the caret") {
  const std::string line(300, 'x');
  CHECK(render({{"a", 1, 5, line}, "m"}) ==
        "a:1:5: m\n  " + std::string(100, 'x') + "…\n      ^\n");
  CHECK(render({{"a", 1, 200, line}, "m"}) ==
        "a:1:200: m\n  …" + std::string(100, 'x') + "…\n  " + std::string(51, ' ') + "^\n");
  CHECK(render({{"a", 1, 300, line}, "m"}) ==
        "a:1:300: m\n  …" + std::string(51, 'x') + "\n  " + std::string(51, ' ') + "^\n");
}

TEST_CASE("diagnostic: lines of a text") {
  const std::string text = "one\r\ntwo\n\nfour";
  CHECK(line_of(text, 1) == "one");
  CHECK(line_of(text, 2) == "two");
  CHECK(line_of(text, 3).empty());
  CHECK(line_of(text, 4) == "four");
  CHECK(line_of(text, 5).empty());
  CHECK(line_of("", 1).empty());
}

TEST_CASE("diagnostic: the word that was meant") {
  const std::vector<std::string> words = {"consecutive", "cooldown", "max_wait", "jitter", "on"};
  struct Row {
    std::string written, meant;
  };
  const Row rows[] = {
      {"consecutiv", "consecutive"},
      {"cool_down", "cooldown"},
      {"max-wait", "max_wait"},
      {"jtiter", "jitter"},
      {"of", "on"},
      {"window", ""},
      {"", ""},
      {"x", ""},
      {std::string(49, 'x'), ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.written);
    CHECK(nearest_word(row.written, words) == row.meant);
  }
}
