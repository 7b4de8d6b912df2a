#include "policy/robots.h"

#include <doctest/doctest.h>

using namespace sluice;

TEST_CASE("robots: whose delay it is") {
  const RobotsFile file = RobotsFile::parse(
      "\xEF\xBB\xBF# a comment\n"
      "User-agent: Googlebot\n"
      "User-Agent: bingbot # two in one group\r\n"
      "Crawl-delay: 2\n"
      "Disallow: /private\n"
      "\n"
      "user-agent: Scrapy\n"
      "Allow: /\n"
      "\n"
      "User-agent: *\n"
      "CRAWL-DELAY : 10.5\n");
  struct Row {
    const char* user_agent;
    Duration delay;
  };
  const Row rows[] = {
      {"", 10500ms},
      {"curl/7.88.1", 10500ms},
      {"googlebot", 2s},
      {"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", 2s},
      {"Mozilla/5.0 (compatible; bingbot/2.0)", 2s},
      {"mygooglebot/1.0", 10500ms},               // a word of its own
      {"googlebot-image/1.0", 10500ms},           // likewise
      {"Scrapy/2.11 (+https://scrapy.org)", 0s},  // its group names no delay: it is not everybody
  };
  for (const Row& row : rows) {
    CAPTURE(row.user_agent);
    CHECK(file.crawl_delay(row.user_agent) == row.delay);
  }
}

TEST_CASE("robots: the best name, and groups that are one") {
  const RobotsFile file = RobotsFile::parse(
      "User-agent: news\nCrawl-delay: 1\n"
      "User-agent: news-images\nCrawl-delay: 3\n"
      "User-agent: news\nCrawl-delay: 2\n");
  CHECK(file.crawl_delay("news/1") == 2s);
  CHECK(file.crawl_delay("news-images news/1") == 3s);
  CHECK(file.crawl_delay("curl") == 0s);
}

TEST_CASE("robots: what is no delay says nothing, and a huge one is bounded") {
  struct Row {
    const char* value;
    Duration delay;
  };
  const Row rows[] = {{"", 0s},        {"soon", 0s},         {"-1", 0s},  {"nan", 0s},
                      {"inf", 0s},     {"1 s", 0s},          {"1e3", 0s}, {"5", 5s},
                      {"0.25", 250ms}, {"99999999999", 24h}, {"0", 0s}};
  for (const Row& row : rows) {
    CAPTURE(row.value);
    const auto file =
        RobotsFile::parse("User-agent: *\nCrawl-delay: " + std::string(row.value) + "\n");
    CHECK(file.crawl_delay("any") == row.delay);
  }
}

TEST_CASE("robots: a delay before any group, pages that are no robots.txt, and size") {
  CHECK(RobotsFile::parse("Crawl-delay: 5\nUser-agent: *\nDisallow:\n") ==
        RobotsFile::parse("User-agent: *\n"));
  CHECK(RobotsFile::parse("<!doctype html><title>Not found</title>") == RobotsFile());
  std::string many;
  for (int i = 0; i < 50'000; ++i) many += "User-agent: a" + std::to_string(i) + "\n";
  many += "User-agent: *\nCrawl-delay: 9\n";  // beyond what is read of it
  CHECK(RobotsFile::parse(many).crawl_delay("b") == 0s);
  CHECK(RobotsFile::parse("User-agent: *\rCrawl-delay: 7\rDisallow: /").crawl_delay("x") == 7s);
}
