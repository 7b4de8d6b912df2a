// Proxy users: reads `name:hash` files and checks credentials against them.
// A first check runs crypt(3) on a thread of its own, slow by design; what it said is remembered
// under a keyed hash, so later requests cost a microsecond. Passwords are never kept or logged.
// One Users serves all workers: every member may be called from any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/callback_handle.h"
#include "proxy/proxy_authorization.h"

namespace sluice {

using UserHashes = std::map<std::string, std::string, std::less<>>;  // name -> crypt(3) hash

struct UserFile {
  UserHashes hashes;
  std::vector<std::string> errors;  // "users:3: message"
  std::string warning;              // empty: none
};
UserFile parse_users(std::string_view text, const std::string& file_name);
UserFile read_users(const std::string& path);  // one that cannot be read is an error in `errors`

class Users {
 public:
  enum class Answer : std::uint8_t {
    yes,
    no,
    busy,  // too many first checks are waiting: refuse, the client may come again
  };
  using Callback = std::function<void(Answer)>;
  using Post = std::function<void(std::function<void()>)>;  // runs it on the caller's loop

  using Handle = CallbackHandle<Callback>;

  explicit Users(UserHashes hashes);
  ~Users();  // checks still waiting are dropped without a callback
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

  // What an earlier check of this very pair said; empty: never checked, or forgotten.
  std::optional<Answer> recall(const Credentials& who) const;

  // Runs the slow check elsewhere. The callback comes through `post`, never inside this call.
  Handle verify(const Credentials& who, Post post, Callback callback);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace sluice
