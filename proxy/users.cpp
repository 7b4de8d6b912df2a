#include "proxy/users.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

namespace sluice {

namespace {

constexpr std::size_t max_file = 4 << 20;
constexpr std::size_t max_remembered = 4096;  // of each answer, so wrong guesses evict no user
constexpr std::size_t max_queue = 64;         // distinct pairs waiting for their first check
constexpr std::size_t max_waiting = 16384;    // callbacks waiting for one pair

// A hash in one of the forms we accept has this many characters after its last '$'.
struct HashKind {
  std::string_view prefix;
  std::size_t digest;
};
constexpr HashKind hash_kinds[] = {
    {"$y$", 43}, {"$6$", 86}, {"$5$", 43}, {"$2b$", 53}, {"$2y$", 53}};

bool is_usable_hash(const std::string& hash) {
  if (hash.size() >= CRYPT_OUTPUT_SIZE) return false;
  const auto kind = std::find_if(std::begin(hash_kinds), std::end(hash_kinds),
                                 [&](const HashKind& k) { return hash.starts_with(k.prefix); });
  if (kind == std::end(hash_kinds) || hash.size() - hash.rfind('$') - 1 != kind->digest)
    return false;
  const int salt = crypt_checksalt(hash.c_str());
  return salt != CRYPT_SALT_INVALID && salt != CRYPT_SALT_METHOD_DISABLED;
}

bool is_usable_name(std::string_view name) {
  if (name.empty() || name.size() > 256) return false;
  return std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

using Digest = std::array<unsigned char, 32>;
struct DigestHash {
  // A keyed hash is as good as random: any eight bytes of it will do.
  std::size_t operator()(const Digest& digest) const noexcept {
    std::size_t value;
    std::memcpy(&value, digest.data(), sizeof value);
    return value;
  }
};

// Takes as long for a wrong password as for a right one.
bool password_matches(const std::string& password, const std::string& hash) {
  const auto scratch = std::make_unique<crypt_data>();
  const char* made = crypt_r(password.c_str(), hash.c_str(), scratch.get());
  const bool same = made != nullptr && std::strlen(made) == hash.size() &&
                    CRYPTO_memcmp(made, hash.data(), hash.size()) == 0;
  OPENSSL_cleanse(scratch.get(), sizeof *scratch);
  return same;
}

}  // namespace

UserFile parse_users(std::string_view text, const std::string& file_name) {
  UserFile users;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
      line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const auto complain = [&](const std::string& message) {
      users.errors.push_back(file_name + ":" + std::to_string(number) + ": " + message);
    };
    const auto colon = line.find(':');
    if (colon == line.npos) {
      complain("expected name:hash");
      continue;
    }
    const std::string name(line.substr(0, colon)), hash(line.substr(colon + 1));
    // Neither the name nor the hash is repeated in a message: a swapped line would leak a password.
    if (!is_usable_name(name))
      complain("a name has 1 to 256 bytes and no control characters");
    else if (!is_usable_hash(hash))
      complain(
          "the hash is not one of crypt(3)'s yescrypt ($y$), $6$, $5$ or $2b$; mkpasswd makes one");
    else if (!users.hashes.emplace(name, hash).second)
      complain("this name was given before");
  }
  return users;
}

UserFile read_users(const std::string& path) {
  const auto failed = [&](const std::string& why) {
    UserFile none;
    none.errors.push_back(path + ": " + why);
    return none;
  };
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return failed(std::generic_category().message(errno));
  if (!S_ISREG(info.st_mode)) return failed("not a regular file");
  if (info.st_size > static_cast<off_t>(max_file)) return failed("larger than 4 MiB");
  std::ifstream file(path, std::ios::binary);
  if (!file) return failed(std::generic_category().message(errno));
  std::string text(max_file, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  UserFile users = parse_users(text, path);
  if ((info.st_mode & S_IROTH) != 0)
    users.warning = path + ": every user of this machine can read the hashes; chmod o= it";
  return users;
}

struct Users::Shared {
  struct Waiting {
    Post post;
    std::shared_ptr<Callback> callback;
  };
  struct Check {
    Digest digest{};
    Credentials who;
    std::vector<Waiting> waiting;
  };
  // The last answers, the oldest leaving first.
  struct Memory {
    std::unordered_map<Digest, Answer, DigestHash> answers;
    std::deque<Digest> yes, no;

    void add(const Digest& digest, Answer answer) {
      if (!answers.emplace(digest, answer).second) return;
      auto& order = answer == Answer::yes ? yes : no;
      order.push_back(digest);
      if (order.size() <= max_remembered) return;
      answers.erase(order.front());
      order.pop_front();
    }
  };

  explicit Shared(UserHashes table) : hashes(std::move(table)) {
    if (RAND_bytes(key.data(), static_cast<int>(key.size())) != 1) std::abort();
    thread = std::thread([this] { run(); });
  }
  ~Shared() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_one();
    thread.join();
    for (Check& check : queue) forget(check.who);
  }

  static void forget(Credentials& who) {
    OPENSSL_cleanse(who.password.data(), who.password.size());
  }

  static void answer(Waiting waiting, Answer answer) {
    waiting.post([callback = std::move(waiting.callback), answer] {
      // The handle lives on this loop, so nothing races with it. The callback may drop it.
      if (const Callback run = std::exchange(*callback, nullptr)) run(answer);
    });
  }

  Digest digest_of(const Credentials& who) const {
    std::string text = who.name + '\0' + who.password;  // neither has a NUL
    Digest digest{};
    unsigned length = 0;
    if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
             &length) == nullptr)
      std::abort();
    OPENSSL_cleanse(text.data(), text.size());
    return digest;
  }

  bool is_right(const Credentials& who) const {
    if (hashes.empty()) return false;
    const auto user = hashes.find(who.name);
    // An unknown name costs the same, or the time would tell which names exist.
    const bool matches = password_matches(
        who.password, user == hashes.end() ? hashes.begin()->second : user->second);
    return matches && user != hashes.end();
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return stopping || !queue.empty(); });
      if (stopping) return;
      // It stays in the queue while it is checked, so that others can join it.
      Credentials who = queue.front().who;
      lock.unlock();
      const Answer said = is_right(who) ? Answer::yes : Answer::no;
      forget(who);
      lock.lock();
      Check done = std::move(queue.front());
      queue.pop_front();
      memory.add(done.digest, said);
      if (stopping) return;
      lock.unlock();
      forget(done.who);
      for (Waiting& waiting : done.waiting) answer(std::move(waiting), said);
      lock.lock();
    }
  }

  const UserHashes hashes;
  std::array<unsigned char, 32> key{};

  std::mutex mutex;  // guards what follows
  std::condition_variable wake;
  bool stopping = false;
  std::deque<Check> queue;
  Memory memory;
  std::thread thread;
};

Users::Users(UserHashes hashes) : shared_(std::make_unique<Shared>(std::move(hashes))) {}
Users::~Users() = default;

std::optional<Users::Answer> Users::recall(const Credentials& who) const {
  const Digest digest = shared_->digest_of(who);
  const std::lock_guard lock(shared_->mutex);
  const auto known = shared_->memory.answers.find(digest);
  if (known == shared_->memory.answers.end()) return std::nullopt;
  return known->second;
}

Users::Handle Users::verify(const Credentials& who, Post post, Callback callback) {
  auto shared_callback = std::make_shared<Callback>(std::move(callback));
  Handle handle(shared_callback);
  Shared::Waiting waiting{std::move(post), std::move(shared_callback)};
  const Digest digest = shared_->digest_of(who);
  std::unique_lock lock(shared_->mutex);
  auto& queue = shared_->queue;
  if (const auto known = shared_->memory.answers.find(digest);
      known != shared_->memory.answers.end()) {
    const Answer answer = known->second;
    lock.unlock();
    Shared::answer(std::move(waiting), answer);
    return handle;
  }
  auto check = std::find_if(queue.begin(), queue.end(),
                            [&](const Shared::Check& c) { return c.digest == digest; });
  if (check == queue.end() && queue.size() < max_queue) {
    queue.push_back({digest, who, {}});
    check = std::prev(queue.end());
  }
  if (check == queue.end() || check->waiting.size() >= max_waiting) {
    lock.unlock();
    Shared::answer(std::move(waiting), Answer::busy);
    return handle;
  }
  check->waiting.push_back(std::move(waiting));
  lock.unlock();
  shared_->wake.notify_one();
  return handle;
}

}  // namespace sluice
