// What Sluice remembers, whichever engine keeps it. Reads answer at once, on any thread, and never
// wait for a write to reach the disk. Writes are queued on any thread and answered when they are
// durable. An engine stores bytes: what they mean is said in record.h, event.h, counter.h and
// lease.h. Every engine is shared by all threads of a process, and by all processes that open it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/result.h"
#include "store/event.h"

namespace sluice {

// Bounds of what an engine accepts; beyond them a write is answered with an error.
inline constexpr std::size_t kMaxKeySize = 511;  // the longest that LMDB takes
inline constexpr std::size_t kMaxValueSize = 64 * 1024;
inline constexpr std::size_t kMaxPageEntries = 1000;
inline constexpr std::size_t kMaxEvents = 10'000;  // the ring: the oldest makes room for the newest

// Runs a task on the caller's own thread, soon. Called from the engine's thread.
using Post = std::function<void(std::function<void()>)>;

// What happens once a write is durable, or has failed. With an empty `post`, `run` is called on the
// engine's thread and must be quick; it may be called before the write call returns.
struct Completion {
  Post post;
  std::function<void(Result<std::uint64_t>)> run;
};

// What an edit makes of the current value.
struct Change {
  enum class Kind : std::uint8_t { keep, put, erase };
  Kind kind = Kind::keep;
  std::string value;         // of a put
  std::uint64_t answer = 0;  // handed to the completion
  bool news = false;         // to this process, too: see Store::version()
};

// Runs inside the write transaction, on the engine's thread, with the value as it is then (none: no
// such key). It may run more than once before it counts, so it must not keep anything of a call.
using Edit = std::function<Change(std::optional<std::string_view> current)>;

struct ReadValue {
  std::optional<std::string> value;  // none: no such key
  std::uint64_t version = 0;         // Store::version(), when this was true
};

struct Entry {
  std::string key, value;
};

struct Page {
  std::vector<Entry> entries;  // in order of their keys
  bool more = false;           // ask again with `after` = the last key
};

struct StoredEvent {
  std::uint64_t sequence = 0;  // rises by one with each event; never used twice
  Event event;
};

struct Health {
  bool ok = true;
  std::string sentence{};      // what is wrong; empty when nothing is
  std::uint64_t failures = 0;  // reads and writes refused so far, whatever holds now
};

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  virtual Result<ReadValue> get(std::string_view key) = 0;
  // Keys that start with `prefix` and come after `after`, at most `limit` of them.
  virtual Result<Page> scan(std::string_view prefix, std::string_view after, std::size_t limit) = 0;
  // Events with a sequence above `after`, oldest first, at most `limit` of them.
  virtual Result<std::vector<StoredEvent>> events(std::uint64_t after, std::size_t limit) = 0;

  // Another number whenever another process has changed anything, or this one has made a change
  // that is `news`: whoever writes what he keeps in memory knows it, and need not read it again.
  // Costs a memory read. What was read at version v is still true, but for one's own writes, while
  // version() == v. It may run ahead of get() for the moment that a commit takes, so keep the
  // version that came with the value. Now and then it moves for nothing, never the other way.
  virtual std::uint64_t version() = 0;
  virtual Health health() = 0;

  // The one way to change a value: atomic among all threads and processes, in the order of the
  // calls of one thread.
  virtual void update(std::string key, Edit edit, Completion done) = 0;
  // Answered with 0.
  virtual void append(const Event& event, Completion done) = 0;

  void put(std::string key, std::string value, Completion done);  // answered with 1
  void erase(std::string key, Completion done);  // answered with 1 if there was something
  // Writes `desired` if the value is `expected` (none: no such key, in both). Answered with 1 for
  // the one that did, 0 for everybody else.
  void compare_and_set(std::string key, std::optional<std::string> expected,
                       std::optional<std::string> desired, Completion done);
};

// Calls the completion on the thread it asked for.
void complete(Completion& done, Result<std::uint64_t> result);

// A sentence if the engine must not take this key or value, else nothing.
std::optional<Error> key_problem(std::string_view key);
std::optional<Error> value_problem(std::string_view value);

}  // namespace sluice
