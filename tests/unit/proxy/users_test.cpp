#include "proxy/users.h"

#include <doctest/doctest.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

using namespace sluice;
using Answer = Users::Answer;

namespace {

// The password of each is "secret"; cheap on purpose.
const char* yescrypt = "$y$j75$abcdefgh$uMUXG79B2cFpoAYyDccUnsaH/aGTyBYMlnQidzyag01";
const char* sha512 =
    "$6$rounds=1000$fYJq00a/8oBSWJ7l$brreRzCEtS6d8.BCopPym6haKuBv.ZWjlstl7VinIadKjbAPmEx4rqAOGJD8qD"
    "d2BjWhMEkfAeOUBpYcrsSqO.";
const char* sha256 = "$5$rounds=1000$x5vW/x492jMBdSqc$qhq8uGC1iZZKWnz8ThyntUij4Y14UDEhixGGNOSlFz5";
const char* bcrypt = "$2b$04$q6XWdzo2odiESivTg6ujdO7DEUvi.5Gv6vkKdUPGTL80wZ1EnW.wK";

std::string basic(const std::string& pair) {
  std::string encoded((pair.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                     reinterpret_cast<const unsigned char*>(pair.data()),
                                     static_cast<int>(pair.size()));
  encoded.resize(static_cast<std::size_t>(length));
  return "Basic " + encoded;
}

// A loop that runs what is posted to it.
class Loop {
 public:
  Users::Post post() {
    return [this](std::function<void()> task) {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      wake_.notify_one();
    };
  }
  void run(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::unique_lock lock(mutex_);
      REQUIRE(wake_.wait_for(lock, std::chrono::seconds(20), [&] { return !tasks_.empty(); }));
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
};

Answer verified(Users& users, const Credentials& who) {
  Loop loop;
  std::optional<Answer> said;
  const auto handle = users.verify(who, loop.post(), [&](Answer answer) { said = answer; });
  CHECK_FALSE(said);  // never inside the call
  loop.run(1);
  REQUIRE(said);
  return *said;
}

}  // namespace

TEST_CASE("proxy-authorization: what is read, and what is not") {
  struct Row {
    std::string value, name, password;  // no name: refused
  };
  const Row rows[] = {
      {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"},  // RFC 7617 §2
      {"bAsIc   QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"},
      {basic("nightly:"), "nightly", ""},
      {basic("a:b:c"), "a", "b:c"},
      {basic("test:123\xc2\xa3"), "test", "123\xc2\xa3"},
      {basic(std::string(256, 'n') + ":" + std::string(1024, 'p')), std::string(256, 'n'),
       std::string(1024, 'p')},
      {basic(std::string(257, 'n') + ":p"), "", ""},
      {basic("n:" + std::string(1025, 'p')), "", ""},
      {basic("no colon"), "", ""},
      {basic(":empty name"), "", ""},
      {basic("a\n:b"), "", ""},
      {basic("a:b\x7f"), "", ""},
      {basic(std::string("a:\0b", 4)), "", ""},
      {basic("\xff:b"), "", ""},
      {basic("\xc0\xaf:b"), "", ""},          // overlong
      {basic("\xed\xa0\x80:b"), "", ""},      // surrogate
      {basic("\xf4\x90\x80\x80:b"), "", ""},  // past U+10FFFF
      {basic("a:\xe2\x82"), "", ""},          // cut short
      {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ", "", ""},
      {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZR==", "", ""},  // unused bits set
      {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ== ", "", ""},
      {"Basic QWxhZGRp bjpvcGVuIHNlc2FtZQ==", "", ""},
      {"Basic QTpi====", "", ""},
      {"Basic Q===", "", ""},
      {"Basic ====", "", ""},
      {"Basic -_8=", "", ""},
      {"Basic", "", ""},
      {"Basic ", "", ""},
      {"", "", ""},
      {" Basic QTpi", "", ""},
      {"Basic\tQTpi", "", ""},
      {"Bearer QTpi", "", ""},
  };
  for (const Row& r : rows) {
    CAPTURE(r.value);
    const auto found = parse_basic(r.value);
    CHECK((found ? found->name : "") == r.name);
    CHECK((found ? found->password : "") == r.password);
  }
}

TEST_CASE("users: a file with its mistakes") {
  const UserFile file =
      parse_users(std::string("# people\r\n\r\nann:") + yescrypt + "\r\nbob:" + sha512 +
                      "\nno colon here\nann:" + bcrypt + "\neve:plain-text\n:" + sha256 +
                      "\ncut:$6$salt$short\ndan:" + sha256,
                  "users");
  CHECK(file.hashes.size() == 3);
  CHECK(file.hashes.at("ann") == yescrypt);
  CHECK(file.hashes.at("bob") == sha512);
  CHECK(file.hashes.at("dan") == sha256);
  const std::string hash =
      "the hash is not one of crypt(3)'s yescrypt ($y$), $6$, $5$ or $2b$; mkpasswd makes one";
  CHECK(file.errors ==
        std::vector<std::string>{"users:5: expected name:hash",
                                 "users:6: this name was given before", "users:7: " + hash,
                                 "users:8: a name has 1 to 256 bytes and no control characters",
                                 "users:9: " + hash});
  CHECK(file.warning.empty());
}

TEST_CASE("users: a file that others can read is used, with a warning") {
  char path[] = "/tmp/sluice-users-XXXXXX";
  const int fd = mkstemp(path);
  REQUIRE(fd >= 0);
  const std::string line = std::string("ann:") + bcrypt + "\n";
  REQUIRE(write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  CHECK(read_users(path).warning.empty());
  REQUIRE(fchmod(fd, 0644) == 0);
  const UserFile file = read_users(path);
  CHECK(file.hashes.size() == 1);
  CHECK(file.warning ==
        std::string(path) + ": every user of this machine can read the hashes; chmod o= it");
  close(fd);
  unlink(path);
  CHECK(read_users(path).errors ==
        std::vector<std::string>{std::string(path) + ": No such file or directory"});
  CHECK(read_users("/").errors == std::vector<std::string>{"/: not a regular file"});
}

TEST_CASE("users: every kind of hash tells right from wrong, and is remembered") {
  Users users(UserHashes{{"y", yescrypt}, {"six", sha512}, {"five", sha256}, {"b", bcrypt}});
  for (const char* name : {"y", "six", "five", "b"}) {
    CAPTURE(name);
    const Credentials right{name, "secret"}, wrong{name, "Secret"};
    CHECK_FALSE(users.recall(right));
    CHECK(verified(users, right) == Answer::yes);
    CHECK(users.recall(right) == Answer::yes);
    CHECK_FALSE(users.recall(wrong));
    CHECK(verified(users, wrong) == Answer::no);
    CHECK(users.recall(wrong) == Answer::no);
    CHECK(users.recall(right) == Answer::yes);
    CHECK(verified(users, right) == Answer::yes);  // from memory, still through the loop
  }
  CHECK(verified(users, {"nobody", "secret"}) == Answer::no);
  CHECK(verified(users, {"y", std::string(600, 'x')}) == Answer::no);  // longer than crypt takes
}

TEST_CASE("users: a name and password that join alike are not the same pair") {
  Users users(UserHashes{{"ab", bcrypt}});
  CHECK(verified(users, {"ab", "secret"}) == Answer::yes);
  CHECK_FALSE(users.recall({"abs", "ecret"}));
  CHECK_FALSE(users.recall({"a", "bsecret"}));
}

TEST_CASE("users: nobody is let in by an empty file") {
  Users users(UserHashes{});
  CHECK(verified(users, {"ann", ""}) == Answer::no);
}

TEST_CASE("users: a dropped handle silences its callback") {
  Users users(UserHashes{{"ann", bcrypt}});
  Loop loop;
  int dropped = 0, kept = 0;
  auto first = users.verify({"ann", "secret"}, loop.post(), [&](Answer) { ++dropped; });
  auto second = users.verify({"ann", "secret"}, loop.post(), [&](Answer) { ++kept; });
  first.reset();
  loop.run(2);
  CHECK(dropped == 0);
  CHECK(kept == 1);
}

TEST_CASE("users: many asking for one pair are one check; too many pairs are refused") {
  Users users(UserHashes{{"ann", yescrypt}});
  Loop loop;
  int yes = 0, no = 0, busy = 0;
  const auto count = [&](Answer a) { ++(a == Answer::yes ? yes : a == Answer::no ? no : busy); };
  std::vector<Users::Handle> handles;
  for (int i = 0; i < 500; ++i)
    handles.push_back(users.verify({"ann", "secret"}, loop.post(), count));
  for (int i = 0; i < 200; ++i)
    handles.push_back(users.verify({"ann", "guess " + std::to_string(i)}, loop.post(), count));
  loop.run(700);
  CHECK(yes == 500);
  CHECK(no >= 63);
  CHECK(no + busy == 200);
  CHECK(users.recall({"ann", "secret"}) == Answer::yes);
}

TEST_CASE("users: the end does not wait for the queue, and calls nobody") {
  Loop loop;
  int calls = 0;
  std::vector<Users::Handle> handles;
  {
    Users users(UserHashes{{"ann", yescrypt}});
    for (int i = 0; i < 60; ++i)
      handles.push_back(
          users.verify({"ann", std::to_string(i)}, loop.post(), [&](Answer) { ++calls; }));
  }
  CHECK(calls == 0);
}
