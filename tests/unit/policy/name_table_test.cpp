#include "policy/name_table.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace sluice;

TEST_CASE("name table: what was put there is found, and nothing else") {
  NameTable<int> table;
  CHECK(table.empty());
  CHECK(table.find("a") == nullptr);
  table["a"] = 1;
  table["b"] = 2;
  CHECK_FALSE(table.empty());
  REQUIRE(table.find("a") != nullptr);
  CHECK(*table.find("a") == 1);
  CHECK(*table.find("b") == 2);
  CHECK(table.find("") == nullptr);
  CHECK(table.find("aa") == nullptr);
  table["a"] = 3;
  CHECK(*table.find("a") == 3);
}

TEST_CASE("name table: values stay where they are while it grows") {
  NameTable<std::string> table;
  std::vector<const std::string*> places;
  for (int i = 0; i < 5000; ++i) {
    std::string& value = table["host" + std::to_string(i) + ".example.test"];
    value = std::to_string(i);
    places.push_back(&value);
  }
  for (int i = 0; i < 5000; ++i) {
    const std::string* found = table.find("host" + std::to_string(i) + ".example.test");
    REQUIRE(found == places[static_cast<std::size_t>(i)]);
    CHECK(*found == std::to_string(i));
  }
  CHECK(table.find("host5000.example.test") == nullptr);
}
