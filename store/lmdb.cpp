#include "store/lmdb.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace sluice {
namespace {

constexpr const char* kDataFile = "data.mdb";
constexpr const char* kLockFile = "lock.mdb";
constexpr off_t kLockFileSize = 68 * 1024;  // kMaxReaders of 64 bytes, and a head
constexpr unsigned kMaxReaders = 1024;
constexpr std::size_t kMaxPageBytes = 4u << 20;  // of one scan
constexpr unsigned kReaderCheckSeconds = 30;
constexpr int kMostLooks = 100;        // for a snapshot that no commit has overtaken
constexpr unsigned kCheckSeconds = 5;  // a store that takes longer to read is checked no further

constexpr MDB_dbi kFreePages = 0;  // LMDB's own; cannot be looked up by key

MDB_val as_val(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write through it
}

std::string_view as_view(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// Big-endian, so that the order of the bytes is the order of the numbers.
std::string sequence_key(std::uint64_t sequence) {
  std::string key(8, '\0');
  for (int i = 7; i >= 0; --i, sequence >>= 8) key[i] = static_cast<char>(sequence & 0xff);
  return key;
}

std::uint64_t sequence_of(std::string_view key) {
  std::uint64_t sequence = 0;
  for (const char c : key.substr(0, 8)) sequence = sequence << 8 | static_cast<unsigned char>(c);
  return sequence;
}

template <auto Free>
struct FreeWith {
  void operator()(auto* p) const noexcept { Free(p); }
};
using CursorPtr = std::unique_ptr<MDB_cursor, FreeWith<mdb_cursor_close>>;

int open_cursor(MDB_txn* transaction, MDB_dbi table, CursorPtr& cursor) {
  MDB_cursor* raw = nullptr;
  const int code = mdb_cursor_open(transaction, table, &raw);
  cursor.reset(raw);
  return code;
}

// LMDB maps its lock file and writes to it through memory: with holes in it, a full disk would end
// the process. Only while no environment is open: closing a file gives up this process's locks on
// it.
int reserve_lock_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  const int code = ::fallocate(fd, 0, 0, kLockFileSize) == 0 ? 0 : errno;
  ::close(fd);
  return code == EOPNOTSUPP ? 0 : code;
}

int open_tables(MDB_env* environment, MDB_dbi& records, MDB_dbi& events) {
  // First as they are: a full disk must not keep a store from being read.
  for (const unsigned flags : {0u, static_cast<unsigned>(MDB_CREATE)}) {
    MDB_txn* transaction = nullptr;
    int code = mdb_txn_begin(environment, nullptr, flags ? 0 : MDB_RDONLY, &transaction);
    if (code == MDB_SUCCESS) {
      code = mdb_dbi_open(transaction, "records", flags, &records);
      if (code == MDB_SUCCESS) code = mdb_dbi_open(transaction, "events", flags, &events);
      if (code == MDB_SUCCESS) return mdb_txn_commit(transaction);
      mdb_txn_abort(transaction);
    }
    if (code != MDB_NOTFOUND) return code;
  }
  return MDB_NOTFOUND;
}

// LMDB writes to whatever its list of free pages names: a count, then that many pages, falling.
bool is_free_list(std::string_view value, std::size_t last_page) {
  const auto word = [&](std::size_t i) {
    std::size_t number = 0;
    std::memcpy(&number, value.data() + i * sizeof number, sizeof number);
    return number;
  };
  const std::size_t words = value.size() / sizeof(std::size_t);
  if (words == 0 || word(0) != words - 1) return false;
  for (std::size_t i = 1; i < words; ++i)
    if (word(i) < 2 || word(i) > last_page || (i > 1 && word(i) >= word(i - 1))) return false;
  return true;
}

// Reads every entry of a table, and finds each again by its key. Bounded: a damaged tree may go in
// circles.
int read_table(MDB_txn* transaction, MDB_dbi table, std::size_t last_page, std::size_t most,
               unsigned& sum) {
  MDB_stat stat{};
  CursorPtr cursor;
  if (const int code = mdb_stat(transaction, table, &stat)) return code;
  if (const int code = open_cursor(transaction, table, cursor)) return code;
  MDB_val key{}, value{}, again{};
  for (std::size_t n = 0; n <= most; ++n) {
    int code = mdb_cursor_get(cursor.get(), &key, &value, MDB_NEXT);
    if (code == MDB_NOTFOUND) return n == stat.ms_entries ? MDB_SUCCESS : MDB_CORRUPTED;
    if (code != MDB_SUCCESS) return code;
    if (table == kFreePages) {
      if (!is_free_list(as_view(value), last_page)) return MDB_CORRUPTED;
      continue;
    }
    code = mdb_get(transaction, table, &key, &again);
    if (code != MDB_SUCCESS || again.mv_data != value.mv_data) return MDB_CORRUPTED;
    for (const char c : as_view(key)) sum += static_cast<unsigned char>(c);
    for (const char c : as_view(value)) sum += static_cast<unsigned char>(c);
  }
  return MDB_CORRUPTED;
}

int read_everything(const std::string& directory) {
  MDB_env* environment = nullptr;
  if (const int code = mdb_env_create(&environment)) return code;
  mdb_env_set_maxdbs(environment, 4);
  if (const int code = mdb_env_open(environment, directory.c_str(), MDB_RDONLY | MDB_NOLOCK, 0))
    return code;
  MDB_txn* transaction = nullptr;
  if (const int code = mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction)) return code;
  MDB_envinfo info{};
  mdb_env_info(environment, &info);
  MDB_stat stat{};
  mdb_env_stat(environment, &stat);
  const std::size_t most = (info.me_last_pgno + 1) * stat.ms_psize / 8;  // a node has 8 bytes
  unsigned sum = 0;
  if (const int code = read_table(transaction, kFreePages, info.me_last_pgno, most, sum))
    return code;
  // The one without a name is LMDB's list of the others; no look-up works in a table not opened.
  for (const char* name : {static_cast<const char*>(nullptr), "records", "events"}) {
    MDB_dbi table = 0;
    const int opened = mdb_dbi_open(transaction, name, 0, &table);
    if (opened == MDB_NOTFOUND) continue;
    if (opened != MDB_SUCCESS) return opened;
    if (const int code = read_table(transaction, table, info.me_last_pgno, most, sum)) return code;
  }
  return MDB_SUCCESS;
}

// LMDB trusts its pages, and a damaged one can end the process that reads it. So a child reads all
// of them first. The caller is alone with the store.
bool is_damaged(const std::string& directory, const std::string& file) {
  struct stat info {};
  // LMDB would take an empty one for new, and nobody would hear of what was in it.
  if (::stat(file.c_str(), &info) == 0 && info.st_size == 0) return true;
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::prctl(PR_SET_DUMPABLE, 0);
    for (const int sign : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM})
      ::signal(sign, SIG_DFL);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);  // of LMDB's assertions
    ::alarm(kCheckSeconds);
    const int code = read_everything(directory);
    ::_exit(code == MDB_INVALID || code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND ||
            code == MDB_CURSOR_FULL || code == MDB_BAD_TXN || code == MDB_INCOMPATIBLE ||
            code == EINVAL);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  if (WIFEXITED(status)) return WEXITSTATUS(status) != 0;
  return WTERMSIG(status) != SIGALRM && WTERMSIG(status) != SIGKILL && WTERMSIG(status) != SIGTERM;
}

// After a failed write of its head, LMDB refuses even reads until it is opened again.
bool refuses_everything(MDB_env* environment) {
  if (!environment) return true;
  MDB_txn* transaction = nullptr;
  const int code = mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction);
  if (code == MDB_SUCCESS) mdb_txn_abort(transaction);
  return code == MDB_PANIC;
}

}  // namespace

LmdbStore::LmdbStore(StoreDirectory directory, const LmdbOptions& options)
    : directory_(std::move(directory)), options_(options), map_size_(options.map_size) {}

Result<OpenedStore> LmdbStore::open(const LmdbOptions& options) {
  auto directory = StoreDirectory::open(options.directory);
  if (!directory) return Error{directory.error()};
  OpenedStore opened;
  const std::string file = directory->file(kDataFile);
  // When another process has it open, that one has checked it.
  if (directory->lock_alone() && ::access(file.c_str(), F_OK) == 0 &&
      is_damaged(options.directory, file)) {
    const auto aside = directory->set_aside(kDataFile, options.now);
    if (!aside) return Error{aside.error()};
    opened.notice = "the store " + file + " was damaged: it was set aside as " + *aside +
                    " and what it remembered is not in force";
  }
  directory->share();
  std::unique_ptr<LmdbStore> store(new LmdbStore(std::move(*directory), options));
  if (const int code = store->open_environment())
    return Error{"cannot open the store " + file + ": " + mdb_strerror(code)};
  for (const char* name : {kDataFile, kLockFile}) store->directory_.hand_over(name);
  store->directory_.sync();
  store->queue_ = std::make_unique<CommitQueue>(
      [self = store.get()](std::vector<Write>& batch) { return self->commit(batch); },
      [self = store.get()] { self->look_after(); });
  // Whoever finds it, a command or the daemon: all of them can read of it later.
  if (!opened.notice.empty()) store->append({options.now, EventKind::store, {}, opened.notice}, {});
  opened.store = std::move(store);
  return opened;
}

LmdbStore::~LmdbStore() {
  queue_.reset();
  close_environment();
}

int LmdbStore::open_environment() {
  int code = reserve_lock_file(directory_.file(kLockFile));
  if (code == 0) code = mdb_env_create(&environment_);
  if (code != MDB_SUCCESS) return code;
  mdb_env_set_maxdbs(environment_, 4);
  mdb_env_set_maxreaders(environment_, kMaxReaders);
  mdb_env_set_mapsize(environment_, map_size_);
  // Every commit is synced (no MDB_NOSYNC, no MDB_NOMETASYNC): what is answered is on the disk.
  code = mdb_env_open(environment_, options_.directory.c_str(), MDB_NOTLS, 0600);
  if (code == MDB_SUCCESS) {
    int dead = 0;
    mdb_reader_check(environment_, &dead);
    code = open_tables(environment_, records_, events_);
  }
  MDB_envinfo info{};
  if (code == MDB_SUCCESS) code = mdb_env_info(environment_, &info);
  if (code != MDB_SUCCESS) {
    close_environment();
    return code;
  }
  map_size_ = info.me_mapsize;
  ++generation_;
  own_from_ = 1;
  own_to_ = 0;
  return MDB_SUCCESS;
}

void LmdbStore::close_environment() {
  for (Slot& slot : slots_)
    if (slot.snapshot) mdb_txn_abort(std::exchange(slot.snapshot, nullptr));
  if (environment_) mdb_env_close(std::exchange(environment_, nullptr));
}

std::vector<std::unique_lock<std::mutex>> LmdbStore::stop_reads() {
  std::vector<std::unique_lock<std::mutex>> quiet;
  for (Slot& slot : slots_) quiet.emplace_back(slot.mutex);
  return quiet;
}

int LmdbStore::reopen() {
  const auto quiet = stop_reads();
  close_environment();
  return open_environment();
}

int LmdbStore::resize(std::size_t size) {
  const auto quiet = stop_reads();
  if (!environment_) return MDB_PANIC;
  const int code = mdb_env_set_mapsize(environment_, size);
  MDB_envinfo info{};
  if (code == MDB_SUCCESS && mdb_env_info(environment_, &info) == MDB_SUCCESS)
    map_size_ = info.me_mapsize;
  return code;
}

LmdbStore::Slot& LmdbStore::own_slot() {
  static std::atomic<unsigned> threads{0};
  thread_local const unsigned mine = threads++;
  return slots_[mine % slots_.size()];
}

int LmdbStore::begin_read(Slot& slot) {
  if (!environment_) return MDB_PANIC;
  int code = slot.snapshot ? mdb_txn_renew(slot.snapshot)
                           : mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &slot.snapshot);
  // LMDB has two heads and writes to the older one. A reader that was kept waiting while two
  // commits went by finds the second of them before it counts, and would go back with its next
  // read. So it looks again.
  MDB_envinfo info{};
  for (int again = 0; again < kMostLooks && code == MDB_SUCCESS; ++again) {
    mdb_env_info(environment_, &info);
    if (info.me_last_txnid < mdb_txn_id(slot.snapshot) + 2) break;
    mdb_txn_reset(slot.snapshot);
    code = mdb_txn_renew(slot.snapshot);
  }
  return code;
}

template <class Body>
int LmdbStore::read(Body body) {
  Slot& slot = own_slot();
  int code = MDB_SUCCESS;
  for (int attempt = 0; attempt < 4; ++attempt) {
    {
      const std::lock_guard lock(slot.mutex);
      code = begin_read(slot);
      if (code == MDB_SUCCESS) {
        code = body(slot.snapshot);
        mdb_txn_reset(slot.snapshot);
        return code;
      }
      int dead = 0;
      if (code == MDB_READERS_FULL) mdb_reader_check(environment_, &dead);
    }
    if (code == MDB_MAP_RESIZED) {
      // Another process has doubled the map. The one time that a read waits for our own commit.
      const std::lock_guard lock(write_mutex_);
      resize(0);
    } else if (code != MDB_READERS_FULL) {
      break;
    }
  }
  return code;
}

Error LmdbStore::read_error(int code) {
  Error error{std::string("the store cannot be read: ") + mdb_strerror(code)};
  set_health(false, error.message, 1);
  return error;
}

Result<ReadValue> LmdbStore::get(std::string_view key) {
  if (auto problem = key_problem(key)) return *problem;
  ReadValue result;
  const int code = read([&](MDB_txn* snapshot) {
    // Of a commit that is on its way the snapshot does not know yet.
    result.version =
        generation_ << 48 | std::min<std::uint64_t>(latest_news(), mdb_txn_id(snapshot));
    MDB_val name = as_val(key), value{};
    const int found = mdb_get(snapshot, records_, &name, &value);
    if (found == MDB_SUCCESS) result.value = as_view(value);
    return found == MDB_NOTFOUND ? MDB_SUCCESS : found;
  });
  if (code != MDB_SUCCESS) return read_error(code);
  return result;
}

Result<Page> LmdbStore::scan(std::string_view prefix, std::string_view after, std::size_t limit) {
  limit = std::min(limit, kMaxPageEntries);
  // The smallest key after `after` is `after` and a zero byte.
  const std::string start =
      after < prefix || after.empty() ? std::string(prefix) : std::string(after) + '\0';
  Page page;
  const int code = read([&](MDB_txn* snapshot) {
    CursorPtr cursor;
    if (const int failed = open_cursor(snapshot, records_, cursor)) return failed;
    MDB_val key = as_val(start), value{};
    int moved =
        mdb_cursor_get(cursor.get(), &key, &value, start.empty() ? MDB_FIRST : MDB_SET_RANGE);
    std::size_t bytes = 0;
    for (; moved == MDB_SUCCESS && as_view(key).starts_with(prefix);
         moved = mdb_cursor_get(cursor.get(), &key, &value, MDB_NEXT)) {
      if (page.entries.size() >= limit || bytes > kMaxPageBytes) {
        page.more = true;
        break;
      }
      page.entries.push_back({std::string(as_view(key)), std::string(as_view(value))});
      bytes += key.mv_size + value.mv_size;
    }
    return moved == MDB_NOTFOUND ? MDB_SUCCESS : moved;
  });
  if (code != MDB_SUCCESS) return read_error(code);
  return page;
}

Result<std::vector<StoredEvent>> LmdbStore::events(std::uint64_t after, std::size_t limit) {
  limit = std::min(limit, kMaxEvents);
  std::vector<StoredEvent> found;
  if (after == UINT64_MAX) return found;
  const std::string start = sequence_key(after + 1);
  const int code = read([&](MDB_txn* snapshot) {
    CursorPtr cursor;
    if (const int failed = open_cursor(snapshot, events_, cursor)) return failed;
    MDB_val key = as_val(start), value{};
    int moved = mdb_cursor_get(cursor.get(), &key, &value, MDB_SET_RANGE);
    for (; moved == MDB_SUCCESS && found.size() < limit;
         moved = mdb_cursor_get(cursor.get(), &key, &value, MDB_NEXT)) {
      // One that cannot be read hides no other.
      if (auto event = decode_event(as_view(value)))
        found.push_back({sequence_of(as_view(key)), *std::move(event)});
    }
    return moved == MDB_NOTFOUND ? MDB_SUCCESS : moved;
  });
  if (code != MDB_SUCCESS) return read_error(code);
  return found;
}

std::uint64_t LmdbStore::version() {
  const std::lock_guard lock(own_slot().mutex);
  return generation_ << 48 | latest_news();
}

// The number of the latest commit that is not known to be ours. While one of ours is on its way to
// the disk it counts as somebody else's; what is somebody else's never counts as ours.
std::uint64_t LmdbStore::latest_news() {
  MDB_envinfo info{};
  if (environment_) mdb_env_info(environment_, &info);
  if (info.me_last_txnid > own_to_) return info.me_last_txnid;
  return own_from_ - 1;
}

Health LmdbStore::health() {
  const std::lock_guard lock(health_mutex_);
  return health_;
}

void LmdbStore::set_health(bool ok, std::string sentence, std::size_t failures) {
  const std::lock_guard lock(health_mutex_);
  health_.ok = ok;
  health_.sentence = std::move(sentence);
  health_.failures += failures;
}

void LmdbStore::update(std::string key, Edit edit, Completion done) {
  if (auto problem = key_problem(key)) return complete(done, *problem);
  queue_->push({std::move(key), std::move(edit), {}, std::move(done)});
}

void LmdbStore::append(const Event& event, Completion done) {
  queue_->push({{}, {}, encode_event(event), std::move(done)});
}

std::optional<Error> LmdbStore::commit(std::vector<Write>& batch) {
  const std::lock_guard lock(write_mutex_);
  int code = MDB_SUCCESS;
  for (int attempt = 0; attempt < 48; ++attempt) {  // more doublings than an address has bits left
    code = environment_ ? commit_once(batch) : MDB_PANIC;
    if (code == MDB_SUCCESS) {
      set_health(true, {}, 0);
      return std::nullopt;
    }
    if (code == MDB_MAP_FULL && map_size_ * 2 <= options_.max_map_size) {
      if (resize(map_size_ * 2) != MDB_SUCCESS) break;
    } else if (code == MDB_MAP_RESIZED) {
      if (resize(0) != MDB_SUCCESS) break;
    } else if (code == MDB_PANIC) {
      code = reopen();
      if (code != MDB_SUCCESS) break;
    } else {
      break;
    }
  }
  // EIO is also what LMDB makes of a write that was cut short.
  const Error error{std::string("the store cannot be written: ") + mdb_strerror(code) +
                    (code == EIO ? " or a full disk" : "")};
  set_health(false, error.message, batch.size());
  if (refuses_everything(environment_)) reopen();
  return error;
}

int LmdbStore::commit_once(std::vector<Write>& batch) {
  MDB_txn* transaction = nullptr;
  int code = mdb_txn_begin(environment_, nullptr, 0, &transaction);
  if (code != MDB_SUCCESS) return code;
  Effect effect;
  for (Write& write : batch) {
    if (write.edit) {
      code = apply(transaction, write, effect);
    } else {
      effect.writes = true;
      code = append_event(transaction, write.event);
    }
    if (code != MDB_SUCCESS) {
      mdb_txn_abort(transaction);
      return code;
    }
  }
  const std::uint64_t number = mdb_txn_id(transaction);
  code = mdb_txn_commit(transaction);  // frees it in any case
  // One that changes nothing takes no number: the next commit of anybody has it.
  if (code != MDB_SUCCESS || !effect.writes || effect.news) return code;
  if (number != own_to_ + 1) own_from_ = number;
  own_to_ = number;
  return code;
}

int LmdbStore::apply(MDB_txn* transaction, Write& write, Effect& effect) {
  MDB_val key = as_val(write.key), value{};
  const int found = mdb_get(transaction, records_, &key, &value);
  if (found != MDB_SUCCESS && found != MDB_NOTFOUND) return found;
  std::optional<std::string_view> current;
  if (found == MDB_SUCCESS) current = as_view(value);
  const Change change = write.edit(current);
  write.answer = change.answer;
  if (change.kind == Change::Kind::erase && current) {
    effect.writes = true;
    effect.news |= change.news;
    return mdb_del(transaction, records_, &key, nullptr);
  }
  if (change.kind != Change::Kind::put) return MDB_SUCCESS;
  if (auto problem = value_problem(change.value)) {
    write.answer = *problem;
    return MDB_SUCCESS;
  }
  effect.writes = true;
  effect.news |= change.news;
  value = as_val(change.value);
  return mdb_put(transaction, records_, &key, &value, 0);
}

int LmdbStore::append_event(MDB_txn* transaction, std::string_view bytes) {
  CursorPtr cursor;
  if (const int code = open_cursor(transaction, events_, cursor)) return code;
  MDB_val key{}, value{};
  int code = mdb_cursor_get(cursor.get(), &key, &value, MDB_LAST);
  if (code != MDB_SUCCESS && code != MDB_NOTFOUND) return code;
  const std::string next = sequence_key(code == MDB_SUCCESS ? sequence_of(as_view(key)) + 1 : 1);
  key = as_val(next);
  value = as_val(bytes);
  code = mdb_cursor_put(cursor.get(), &key, &value, MDB_APPEND);
  MDB_stat stat{};
  if (code == MDB_SUCCESS) code = mdb_stat(transaction, events_, &stat);
  if (code != MDB_SUCCESS || stat.ms_entries <= kMaxEvents) return code;
  code = mdb_cursor_get(cursor.get(), &key, &value, MDB_FIRST);
  return code == MDB_SUCCESS ? mdb_cursor_del(cursor.get(), 0) : code;
}

// Once a second without writes: a failing store is tried again, and the places in the reader table
// of processes that were killed are freed.
void LmdbStore::look_after() {
  if (!health().ok) {
    std::vector<Write> trial(1);
    trial[0].key = "sluice/trial";
    trial[0].edit = [](std::optional<std::string_view>) {
      return Change{Change::Kind::put, "written when the disk had failed", 0};
    };
    commit(trial);
    return;
  }
  if (++idle_seconds_ % kReaderCheckSeconds != 0) return;
  int dead = 0;
  mdb_reader_check(environment_, &dead);
}

}  // namespace sluice
