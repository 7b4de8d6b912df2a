// How often each URL was asked for: exact for few, safe for very many.
#include "policy/url_sketch.h"

#include <doctest/doctest.h>

#include <random>

using namespace sluice;

namespace {

constexpr Instant t0{1000h};

std::uint64_t url(std::uint64_t n) {
  std::mt19937_64 random(n);
  return random();
}

}  // namespace

TEST_CASE("url sketch: counts what came within the time") {
  UrlSketch urls(1024, 5min);
  CHECK(urls.count(url(1), t0) == 0);
  for (std::uint32_t i = 1; i <= 200; ++i) CHECK(urls.add(url(1), t0 + i * 1s) == i);
  CHECK(urls.count(url(2), t0 + 200s) == 0);
  CHECK(urls.count(url(1), t0 + 200s) == 200);
  CHECK(urls.count(url(1), t0 + 501s) == 0);
  CHECK(urls.add(url(1), t0 + 501s) == 1);
}

TEST_CASE("url sketch: never counts what is older, and at most an eighth less") {
  UrlSketch urls(1024, 5min);
  for (Duration phase{}; phase < 5min; phase += 7s) {
    const std::uint64_t one = url(static_cast<std::uint64_t>(phase / 1s) + 10);
    const Instant first = t0 + phase;
    urls.add(one, first);
    CHECK(urls.count(one, first + 262s) == 1);
    CHECK(urls.count(one, first + 300s) == 0);
  }
}

TEST_CASE("url sketch: a clock that is a moment behind counts all the same") {
  UrlSketch urls(1024, 5min);
  urls.add(url(1), t0 + 1s);
  CHECK(urls.add(url(1), t0 - 50s) == 2);
}

TEST_CASE("url sketch: a million URLs in bounded memory, none made up, and the loop is found") {
  UrlSketch urls(256 * 1024, 5min);
  const std::size_t bytes = urls.bytes();
  CHECK(bytes <= 5u << 20);
  const std::uint64_t loop = url(1'000'000'007);
  std::mt19937_64 random(1);
  std::uint32_t most_of_others = 0, most_of_loop = 0;
  constexpr int kUrls = 1'000'000;
  for (int i = 0; i < kUrls; ++i) {  // within four minutes
    const Instant now = t0 + 240s * std::int64_t{i} / kUrls;
    most_of_others = std::max(most_of_others, urls.add(random(), now));
    if (i % 10'000 == 0) most_of_loop = urls.add(loop, now);  // every 2.4 s
  }
  CHECK(urls.bytes() == bytes);
  CHECK(most_of_others <= 2);  // two URLs with one fingerprint
  CHECK(most_of_loop >= 90);
  CHECK(most_of_loop <= 100);
}
