// The store on this machine's disk: LMDB, shared live by every process that opens the directory.
// One thread writes (see commit_queue.h); reads take a snapshot under a lock of their own thread's,
// so that a map that must grow can wait for them. Only one LmdbStore per directory and process, and
// none of them may be used on the other side of a fork().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/commit_queue.h"
#include "store/directory.h"
#include "store/store.h"

struct MDB_env;
struct MDB_txn;

namespace sluice {

struct LmdbOptions {
  std::string directory;
  UtcTime now{};  // names a damaged file
  // Address space, not disk: the file is as large as what is in it. Doubled when it is used up.
  std::size_t map_size = std::size_t{1} << 30;
  std::size_t max_map_size = std::size_t{1} << 36;
};

struct OpenedStore {
  std::unique_ptr<Store> store;
  std::string notice;  // what the operator must know, e.g. that a damaged file was set aside
};

class LmdbStore : public Store {
 public:
  static Result<OpenedStore> open(const LmdbOptions& options);
  ~LmdbStore() override;

  Result<ReadValue> get(std::string_view key) override;
  Result<Page> scan(std::string_view prefix, std::string_view after, std::size_t limit) override;
  Result<std::vector<StoredEvent>> events(std::uint64_t after, std::size_t limit) override;
  std::uint64_t version() override;
  Health health() override;
  void update(std::string key, Edit edit, Completion done) override;
  void append(const Event& event, Completion done) override;

 private:
  // A reader in LMDB's table, for the threads that share it: one each, up to 48 threads. All
  // are locked at once now and then, and ThreadSanitizer cannot follow 64 locks.
  struct alignas(64) Slot {
    std::mutex mutex;
    MDB_txn* snapshot = nullptr;  // idle between reads, so that it holds back no pages
  };

  // What a batch of writes comes to.
  struct Effect {
    bool writes = false;  // anything at all
    bool news = false;
  };

  LmdbStore(StoreDirectory directory, const LmdbOptions& options);
  int open_environment();
  void close_environment();
  std::vector<std::unique_lock<std::mutex>> stop_reads();
  int reopen();
  int resize(std::size_t size);  // 0: what another process has made of it

  Slot& own_slot();
  int begin_read(Slot& slot);
  std::uint64_t latest_news();
  template <class Body>
  int read(Body body);
  Error read_error(int code);

  std::optional<Error> commit(std::vector<Write>& batch);
  int commit_once(std::vector<Write>& batch);
  int apply(MDB_txn* transaction, Write& write, Effect& effect);
  int append_event(MDB_txn* transaction, std::string_view bytes);
  void look_after();
  void set_health(bool ok, std::string sentence, std::size_t failures);

  StoreDirectory directory_;
  const LmdbOptions options_;

  // Changed only with write_mutex_ and every slot held; read with either.
  MDB_env* environment_ = nullptr;  // none: it could not be opened again after a failure
  unsigned records_ = 0, events_ = 0;
  std::size_t map_size_ = 0;
  std::uint64_t generation_ = 0;  // how often it was opened

  // Commits of our own that are news to nobody here: the latest ones that no other commit came
  // between. `own_to_` is written last and read first. Commits are numbered in all processes.
  std::atomic<std::uint64_t> own_from_{1}, own_to_{0};

  std::mutex write_mutex_;  // held while a write transaction is open; taken before any slot
  std::array<Slot, 48> slots_;
  std::mutex health_mutex_;
  Health health_;
  unsigned idle_seconds_ = 0;           // the queue's thread only
  std::unique_ptr<CommitQueue> queue_;  // last: its thread uses all of the above
};

}  // namespace sluice
