// Leaf certificates, one per host: made on a thread of its own, never on an event loop, kept in
// memory up to a bound, and made once however many ask at the same time. The CA is loaded, or made,
// when the first leaf is wanted, and its files are looked at again every few seconds: a new CA, or
// a key that others can read by now, ends the leaves of before. One Mint serves all workers: any
// thread may call any member.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "policy/result.h"
#include "policy/time.h"
#include "proxy/callback_handle.h"
#include "proxy/net/host_name.h"
#include "proxy/tls/authority.h"

namespace sluice {

struct Leaf {
  CertPtr certificate;
  EVP_PKEY* key;                    // one for all leaves of this process; never on disk
  UtcTime renew_at;                 // from then on a new one is made
  CertChain chain{};                // shown with it; null: nothing
  UtcTime begins = UtcTime::min();  // before then it is not valid, as after a clock was set back
};
using LeafRef = std::shared_ptr<const Leaf>;

class Mint {
 public:
  using Callback = std::function<void(Result<LeafRef>)>;
  using Post = std::function<void(std::function<void()>)>;  // runs it on the caller's loop
  using Clock = UtcTime (*)();

  using Handle = CallbackHandle<Callback>;

  Mint(AuthorityFiles files, Clock clock, std::size_t capacity = 1024);
  ~Mint();  // what is still wanted is dropped without a callback
  Mint(const Mint&) = delete;
  Mint& operator=(const Mint&) = delete;

  LeafRef find(std::string_view host);  // null: want() it
  // The callback comes through `post`, never inside this call.
  Handle want(std::string_view host, Post post, Callback callback);
  std::size_t minted() const;  // so far

 private:
  struct Waiting {
    Post post;
    std::shared_ptr<Callback> callback;
  };
  struct Order {
    std::string host;
    std::vector<Waiting> waiting;
  };
  struct Kept {
    LeafRef leaf;
    std::list<std::string>::iterator used;  // in recent_
  };

  LeafRef look_up(std::string_view host, UtcTime now);  // with the lock
  void keep(const std::string& host, const LeafRef& leaf);
  bool time_to_look(UtcTime now) const;  // with the lock
  // On the mint's own thread.
  bool look_at_files();  // true: they are not what they were
  Result<LeafRef> make(const std::string& host);
  void run();

  const AuthorityFiles files_;
  const Clock clock_;
  const std::size_t capacity_;
  const KeyPtr key_;
  std::optional<Authority> authority_;  // of the mint's own thread, as the next one
  std::string stamp_;                   // of the CA's files

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  std::size_t minted_ = 0;
  UtcTime looked_ = UtcTime::min();  // at the files
  std::deque<Order> orders_;
  NameMap<Kept> leaves_;
  std::list<std::string> recent_;  // the last used in front
  std::thread thread_;
};

}  // namespace sluice
