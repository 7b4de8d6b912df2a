// A power loss at any moment of a commit, and a kill at any moment at all: what was answered is
// there.
#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <set>

#include "unit/store/disk.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

TEST_CASE("power loss: every image that a lost disk could leave holds all that was answered") {
  struct Loss {
    std::string image;
    int answered;
  };
  std::vector<Loss> losses;
  TempDirectory directory;
  {
    auto opened = open_or_die(directory.path());
    WatchedDisk disk(directory.data(), 7);
    std::atomic<int> answered{0};
    int moments = 0;
    Disk faults;
    faults.on_power_loss = [&](std::string image) {
      if (++moments % 3 == 0) losses.push_back({std::move(image), answered});
    };
    disk.set(faults);
    for (int i = 0; i < 40; ++i) {
      // Large enough for pages of their own, so that a commit has several writes.
      opened.store->put("early/" + std::to_string(i), std::string(6000, 'e'), {});
      const auto result = wait_for([&](Completion done) {
        done.run = [&, run = std::move(done.run)](Result<std::uint64_t> r) {
          if (r) ++answered;
          run(std::move(r));
        };
        opened.store->put("k" + std::to_string(i), "v" + std::to_string(i), std::move(done));
      });
      REQUIRE(result);
    }
    opened.store.reset();
  }
  REQUIRE(losses.size() >= 30);
  for (const Loss& loss : losses) {
    CAPTURE(loss.answered);
    TempDirectory copy;
    spill(copy.data(), loss.image);
    auto opened = open_or_die(copy.path());
    CHECK(opened.notice == "");
    for (int i = 0; i < loss.answered; ++i)
      REQUIRE(value_of(*opened.store, "k" + std::to_string(i)) == "v" + std::to_string(i));
  }
}

TEST_CASE("kill -9: sixty processes die while they write, and nothing answered is lost") {
  TempDirectory directory;
  std::mt19937 random(11);
  std::set<std::uint64_t> answered;
  for (std::uint64_t round = 0; round < 60; ++round) {
    CAPTURE(round);
    Child child([&](Line line) {
      auto opened = open_or_die(directory.path());
      for (std::uint64_t i = 0;; ++i) {
        const std::uint64_t id = round << 32 | i;
        const auto put_one = [&](Completion done) {
          opened.store->put("k" + std::to_string(id), std::string(1 + i % 3000, 'x'),
                            std::move(done));
        };
        const auto tell = [line, id](const Result<std::uint64_t>& r) {
          if (r) line.tell(id);
        };
        // Now and then wait, so that commits are of all sizes.
        if (i % 16 != 0) {
          put_one({{}, tell});
        } else if (auto result = wait_for(put_one)) {
          tell(result);
        }
      }
      return 0;
    });
    for (unsigned acks = random() % 60; acks > 0; --acks) {
      const auto id = child.line().hear();
      REQUIRE(id);
      answered.insert(*id);
    }
    child.kill();
    while (const auto id = child.line().hear()) answered.insert(*id);

    auto opened = open_or_die(directory.path());
    CHECK(opened.notice == "");
    for (const std::uint64_t id : answered) {
      if (id >> 32 != round) continue;
      REQUIRE(value_of(*opened.store, "k" + std::to_string(id)).find('x') == 0);
    }
  }
  auto opened = open_or_die(directory.path());
  for (const std::uint64_t id : answered)
    REQUIRE(value_of(*opened.store, "k" + std::to_string(id)).find('x') == 0);
  CHECK(answered.size() >= 1000);
}
