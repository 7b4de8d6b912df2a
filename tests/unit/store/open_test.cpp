// The words of store.url.
#include "store/open.h"

#include <doctest/doctest.h>

#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

TEST_CASE("open: lmdb: is the state directory, a path is another, memory: forgets") {
  TempDirectory directory;
  {
    auto opened = open_store("lmdb:", directory.path() + "/state", kNoon);
    REQUIRE(opened);
    REQUIRE(put(*opened->store, "k", "v"));
    CHECK(std::filesystem::exists(directory.path() + "/state/data.mdb"));
  }
  {
    auto opened = open_store("lmdb:" + directory.path() + "/other", directory.path(), kNoon);
    REQUIRE(opened);
    CHECK(value_of(*opened->store, "k") == "(none)");
    CHECK(std::filesystem::exists(directory.path() + "/other/data.mdb"));
  }
  for (int i = 0; i < 2; ++i) {
    auto opened = open_store("memory:", directory.path(), kNoon);
    REQUIRE(opened);
    CHECK(value_of(*opened->store, "k") == "(none)");
    REQUIRE(put(*opened->store, "k", "v"));
  }
}

TEST_CASE("open: another engine is refused by its name") {
  CHECK(open_store("postgres://x", "/tmp", kNoon).error() ==
        "store.url is \"postgres://x\", but must begin with \"lmdb:\"");
}
