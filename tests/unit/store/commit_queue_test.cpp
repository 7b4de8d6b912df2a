// Group commit without an engine: what is gathered, in which order, and what is answered.
#include "store/commit_queue.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <string>
#include <vector>

using namespace sluice;

namespace {

Write write_of(std::string key, std::function<void(Result<std::uint64_t>)> run = {}) {
  return {std::move(key),
          [](std::optional<std::string_view>) { return Change{}; },
          {},
          {{}, std::move(run)}};
}

// A disk that says when it has a batch, and works on it until it is let go.
class SlowDisk {
 public:
  std::optional<Error> commit(std::vector<Write>& batch) {
    batches.push_back(batch.size());
    for (const Write& write : batch) keys += write.key;
    if (first_) {
      first_ = false;
      busy.set_value();
      go.get_future().wait();
    }
    return std::nullopt;
  }

  std::promise<void> busy, go;
  std::vector<std::size_t> batches;  // the queue's thread; ours when that has ended
  std::string keys;

 private:
  bool first_ = true;
};

}  // namespace

TEST_CASE("commit queue: what comes during a commit shares the next one") {
  SlowDisk disk;
  std::string answered;
  {
    CommitQueue queue([&](std::vector<Write>& batch) { return disk.commit(batch); }, [] {});
    const auto push = [&](const char* key) {
      queue.push(
          write_of(key, [&answered, key](const Result<std::uint64_t>&) { answered += key; }));
    };
    push("a");
    disk.busy.get_future().wait();
    for (const char* key : {"b", "c", "d", "e"}) push(key);
    disk.go.set_value();
  }
  CHECK(disk.batches == std::vector<std::size_t>{1, 4});
  CHECK(disk.keys == "abcde");
  CHECK(answered == "abcde");
}

TEST_CASE("commit queue: a batch has a bound, and ending it drops nothing") {
  SlowDisk disk;
  std::size_t answered = 0;
  const std::size_t count = CommitQueue::kMaxBatch * 2 + 10;
  {
    CommitQueue queue([&](std::vector<Write>& batch) { return disk.commit(batch); }, [] {});
    queue.push(write_of("x"));
    disk.busy.get_future().wait();
    for (std::size_t i = 0; i < count; ++i)
      queue.push(write_of("", [&](const Result<std::uint64_t>&) { ++answered; }));
    disk.go.set_value();
  }
  CHECK(disk.batches ==
        std::vector<std::size_t>{1, CommitQueue::kMaxBatch, CommitQueue::kMaxBatch, 10});
  CHECK(answered == count);
}

TEST_CASE("commit queue: beyond its bound a write is refused at once") {
  SlowDisk disk;
  std::string said;
  std::size_t refused = 0;
  {
    CommitQueue queue([&](std::vector<Write>& batch) { return disk.commit(batch); }, [] {});
    queue.push(write_of("x"));
    disk.busy.get_future().wait();
    for (std::size_t i = 0; i < CommitQueue::kMaxWaiting; ++i) queue.push(write_of(""));
    queue.push(write_of("", [&](const Result<std::uint64_t>& result) {
      ++refused;
      said = result.error();
    }));
    CHECK(refused == 1);  // on our own thread, before push() returned
    disk.go.set_value();
  }
  CHECK(said == "too many writes are waiting for the store");
  CHECK(refused == 1);
}

TEST_CASE("commit queue: a failed commit fails every write of its batch, and no other") {
  SlowDisk disk;
  std::vector<std::string> said;
  int commits = 0;
  {
    CommitQueue queue(
        [&](std::vector<Write>& batch) -> std::optional<Error> {
          disk.commit(batch);
          if (++commits == 2) return Error{"no space"};
          for (Write& write : batch) write.answer = std::uint64_t{5};
          return std::nullopt;
        },
        [] {});
    const auto note = [&](const Result<std::uint64_t>& result) {
      said.push_back(result ? std::to_string(*result) : result.error());
    };
    queue.push(write_of("a", note));
    disk.busy.get_future().wait();
    queue.push(write_of("b", note));
    queue.push(write_of("c", note));
    disk.go.set_value();
  }
  CHECK(said == std::vector<std::string>{"5", "no space", "no space"});
}

TEST_CASE("commit queue: while nothing is written it looks after the store") {
  std::promise<void> idle;
  std::atomic<int> times{0};
  CommitQueue queue([](std::vector<Write>&) { return std::nullopt; },
                    [&] {
                      if (++times == 1) idle.set_value();
                    });
  idle.get_future().wait();
  CHECK(times >= 1);
}
