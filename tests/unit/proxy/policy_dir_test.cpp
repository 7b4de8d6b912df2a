#include "proxy/policy_dir.h"

#include <doctest/doctest.h>

#include <string>

#include "unit/proxy/folder.h"

using namespace sluice;
using sluice::test::Folder;

namespace {

std::string policy_for(const PolicyLoad& load, const std::string& host) {
  return load.set->match(host, 80, "/").policy->name;
}

unsigned consecutive(const PolicyLoad& load, const std::string& host) {
  return load.set->match(host, 80, "/").rules().breaker.consecutive;
}

// Complaints with the folder's own name left out.
std::string complaints(const PolicyLoad& load, const Folder& folder) {
  std::string out;
  for (const Diagnostic& problem : load.problems) out += render(problem);
  for (auto at = out.find(folder.path("")); at != std::string::npos;
       at = out.find(folder.path(""))) {
    out.erase(at, folder.path("").size());
  }
  return out;
}

}  // namespace

TEST_CASE("policy directory: every .toml in it, and nothing else") {
  const Folder folder;
  folder.write("b.toml", "hosts = ['b.test']");
  folder.write("a.toml", "hosts = ['a.test']");
  for (const char* name :
       {".hidden.toml", "#a.toml#", ".#a.toml", "a.toml~", "a.toml.swp", "README"}) {
    folder.write(name, "not toml at all [");
  }
  folder.write("folder.toml/x.toml", "hosts = ['x.test']");
  const auto files = policy_files(folder.path(""));
  REQUIRE(files);
  CHECK(*files == std::vector<std::string>{folder.path("a.toml"), folder.path("b.toml")});
  const PolicyLoad load = load_policies(folder.path(""), {});
  CHECK(complaints(load, folder) == "");
  CHECK(load.in_force.size() == 2);
  CHECK(policy_for(load, "a.test") == "a");
  CHECK(policy_for(load, "x.test") == "default");
}

TEST_CASE("policy directory: none, and one that is not there") {
  CHECK(load_policies("", {}).problems.empty());
  const Folder folder;
  const PolicyLoad load = load_policies(folder.path("no"), {});
  CHECK(complaints(load, folder) == "no:1:1: cannot be read: No such file or directory\n");
  CHECK(policy_for(load, "a.test") == "default");
}

TEST_CASE("policy directory: a bad file is refused whole and its last good version stays") {
  const Folder folder;
  folder.write("a.toml", "hosts = ['a.test']\nbreaker.consecutive = 7");
  folder.write("b.toml", "hosts = ['b.test']");
  const PolicyLoad first = load_policies(folder.path(""), {});
  CHECK(consecutive(first, "a.test") == 7);

  folder.write("a.toml", "hosts = ['a.test', 'more.test']\nbreaker.consecutive = 'x'");
  const PolicyLoad second = load_policies(folder.path(""), {}, &first);
  CHECK(complaints(second, folder) ==
        "a.toml:2:23: breaker.consecutive must be a whole number, not a string\n"
        "  breaker.consecutive = 'x'\n"
        "                        ^\n");
  CHECK(consecutive(second, "a.test") == 7);
  CHECK(policy_for(second, "more.test") == "default");
  CHECK(policy_for(second, "b.test") == "b");

  SUBCASE("still so at the next load") {
    const PolicyLoad third = load_policies(folder.path(""), {}, &second);
    CHECK(consecutive(third, "a.test") == 7);
    CHECK(third.problems.size() == 1);
  }
  SUBCASE("until it is mended") {
    folder.write("a.toml", "hosts = ['a.test']\nbreaker.consecutive = 8");
    const PolicyLoad third = load_policies(folder.path(""), {}, &second);
    CHECK(third.problems.empty());
    CHECK(consecutive(third, "a.test") == 8);
  }
  SUBCASE("or taken away") {
    folder.remove("a.toml");
    const PolicyLoad third = load_policies(folder.path(""), {}, &second);
    CHECK(third.problems.empty());
    CHECK(policy_for(third, "a.test") == "default");
  }
  SUBCASE("a start has no last good version") {
    const PolicyLoad fresh = load_policies(folder.path(""), {});
    CHECK(fresh.problems.size() == 1);
    CHECK(policy_for(fresh, "a.test") == "default");
    CHECK(policy_for(fresh, "b.test") == "b");
  }
}

TEST_CASE("policy directory: a new file cannot push an old one out") {
  const Folder folder;
  folder.write("m.toml", "hosts = ['x.test']");
  const PolicyLoad first = load_policies(folder.path(""), {});
  folder.write("a.toml", "hosts = ['x.test', 'y.test']");  // before it in the alphabet
  const PolicyLoad second = load_policies(folder.path(""), {}, &first);
  CHECK(policy_for(second, "x.test") == "m");
  CHECK(policy_for(second, "y.test") == "default");
  REQUIRE(second.problems.size() == 1);
  CHECK(second.problems[0].message.starts_with("\"x.test\" is already in "));
  CHECK(second.problems[0].file.ends_with("/a.toml"));

  folder.remove("m.toml");
  const PolicyLoad third = load_policies(folder.path(""), {}, &second);
  CHECK(third.problems.empty());
  CHECK(policy_for(third, "x.test") == "a");
}

TEST_CASE("policy directory: a host may move from one file to another in one load") {
  const Folder folder;
  folder.write("a.toml", "hosts = ['x.test']");
  folder.write("b.toml", "hosts = ['y.test']");
  const PolicyLoad first = load_policies(folder.path(""), {});
  folder.write("a.toml", "hosts = ['y.test']");
  folder.write("b.toml", "hosts = ['x.test']");
  const PolicyLoad second = load_policies(folder.path(""), {}, &first);
  CHECK(complaints(second, folder) == "");
  CHECK(policy_for(second, "x.test") == "b");
  CHECK(policy_for(second, "y.test") == "a");
}

TEST_CASE("policy directory: one that cannot be listed for a moment has not lost its policies") {
  const Folder folder;
  folder.write("p/a.toml", "hosts = ['a.test']");
  const PolicyLoad first = load_policies(folder.path("p"), {});
  const PolicyLoad second = load_policies(folder.path("gone"), {}, &first);
  CHECK(second.problems.size() == 1);
  CHECK(policy_for(second, "a.test") == "a");
}

TEST_CASE("policy directory: the defaults are under every policy") {
  const Folder folder;
  folder.write("a.toml", "hosts = ['a.test']");
  Policy base;
  base.rules.breaker.consecutive = 3;
  const PolicyLoad load = load_policies(folder.path(""), base);
  CHECK(consecutive(load, "a.test") == 3);
  CHECK(consecutive(load, "b.test") == 3);
}
