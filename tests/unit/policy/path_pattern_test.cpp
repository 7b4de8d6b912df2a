#include "policy/path_pattern.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace sluice;

TEST_CASE("path pattern: what matches") {
  struct Row {
    std::string pattern, path;
    bool matches;
  };
  const Row rows[] = {
      {"/*", "/", true},
      {"/*", "/a/b?c", true},
      {"*", "", true},
      {"/a", "/a", true},
      {"/a", "/a?x=1", true},
      {"/a", "/a/", false},
      {"/a", "/A", false},
      {"/a", "/ab", false},
      {"/a/*", "/a/", true},
      {"/a/*", "/a/b/c", true},
      {"/a/*", "/a", false},
      {"*.pdf", "/x/y.pdf", true},
      {"*.pdf", "/x/y.pdf?download=1", true},
      {"*.pdf", "/x?name=y.pdf", false},  // a query is never looked at
      {"*.pdf", "/x/y.pdfx", false},
      {"/v*/users/*", "/v1/users/7", true},
      {"/v*/users/*", "/v1/x/users/", true},
      {"/v*/users/*", "/v1/user/7", false},
      {"/a*b*c", "/abbbc", true},
      {"/a*b*c", "/abc/c/b", false},
      {"/a**c", "/ac", true},
      {"/*x", "/x", true},
      {"/a", "", false},
      {"/a*", "/a", true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.pattern);
    CAPTURE(row.path);
    CHECK(path_matches(row.pattern, row.path) == row.matches);
  }
}

TEST_CASE("path pattern: the more it says, the earlier it is asked") {
  std::vector<std::string> patterns = {"/*", "*.pdf",  "/download/*", "/a", "/download/file",
                                       "*",  "/d*/f*", "/download*"};
  std::sort(patterns.begin(), patterns.end(), more_specific_path);
  CHECK(patterns == std::vector<std::string>{"/download/file", "/a", "/download/*", "/download*",
                                             "*.pdf", "/d*/f*", "/*", "*"});
  for (const std::string& pattern : patterns) CHECK_FALSE(more_specific_path(pattern, pattern));
  CHECK(matches_all_paths("*"));
  CHECK(matches_all_paths("/*"));
  CHECK_FALSE(matches_all_paths("/**"));
}

TEST_CASE("path pattern: no pattern makes a path expensive") {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  pattern += "*b";
  CHECK_FALSE(path_matches(pattern, "/" + std::string(60000, 'a')));
}
