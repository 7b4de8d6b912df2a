// What the robots.txt of each origin says, for policies with crawl_delay: fetched once however many
// want to know, and forgotten when the answer says so. Bounded. One desk serves all workers: any
// thread may call any member.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/robots.h"
#include "policy/time.h"
#include "proxy/callback_handle.h"
#include "proxy/mailbox.h"

namespace sluice {

using RobotsRef = std::shared_ptr<const RobotsFile>;

class RobotsDesk {
 public:
  using Callback = std::function<void(const RobotsRef&)>;
  using Handle = CallbackHandle<Callback>;
  struct Asked {
    Handle handle{};
    bool first = false;  // nobody fetches it yet: the caller must, and say learned()
  };

  explicit RobotsDesk(std::size_t capacity = 4096) : capacity_(capacity) {}

  RobotsRef find(const std::string& origin, Instant now);  // null: nobody knows
  // The callback comes through the mailbox, never inside this call.
  Asked want(const std::string& origin, Mailbox& mailbox, Callback callback);
  void learned(const std::string& origin, RobotsFile file, Instant now, Instant until);

 private:
  struct Kept {
    RobotsRef file;
    Instant until{};
  };
  struct Waiting {
    Mailbox* mailbox;
    std::shared_ptr<Callback> callback;
  };

  const std::size_t capacity_;
  std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, Kept> kept_;
  std::unordered_map<std::string, std::vector<Waiting>> waiting_;  // a name: it is being fetched
};

}  // namespace sluice
