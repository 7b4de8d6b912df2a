#include "proxy/admin/token.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "unit/store/support.h"

using namespace sluice;
using testing::slurp;
using testing::spill;
using testing::TempDirectory;

TEST_CASE("token: made once, for the owner only, and kept") {
  const TempDirectory folder;
  const auto first = read_or_make_token(folder.path());
  REQUIRE(first);
  CHECK(first->size() == 64);
  struct stat about {};
  REQUIRE(stat((folder.path() + "/admin.token").c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
  const auto second = read_or_make_token(folder.path());
  REQUIRE(second);
  CHECK(*second == *first);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);

  const TempDirectory other;
  CHECK(*read_or_make_token(other.path()) != *first);
}

TEST_CASE("token: one that others could know is refused with a sentence") {
  const TempDirectory folder;
  const std::string path = folder.path() + "/admin.token";
  spill(path, std::string(64, 'x') + "\n");
  chmod(path.c_str(), 0644);
  auto token = read_or_make_token(folder.path());
  REQUIRE_FALSE(token);
  CHECK(token.error() == path + " can be read by others: chmod 600 it, or remove it for a new one");
  chmod(path.c_str(), 0600);
  CHECK(*read_or_make_token(folder.path()) == std::string(64, 'x'));
  for (const std::string bad : {"", "short\n", "with a space in the middle of the token......"}) {
    spill(path, bad);
    CHECK_FALSE(read_or_make_token(folder.path()));
  }
  unlink(path.c_str());
  std::filesystem::create_symlink("/etc/hostname", path);
  CHECK_FALSE(read_or_make_token(folder.path()));
  CHECK_FALSE(read_or_make_token(folder.path() + "/not/there"));
}

TEST_CASE("token: several that start at once agree") {
  const TempDirectory folder;
  std::vector<std::string> tokens(8);
  std::vector<std::thread> threads;
  for (std::string& token : tokens)
    threads.emplace_back([&] { token = *read_or_make_token(folder.path()); });
  for (std::thread& thread : threads) thread.join();
  CHECK(std::set<std::string>(tokens.begin(), tokens.end()).size() == 1);
}
