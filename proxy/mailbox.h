// A way into an event loop from any other thread: what is posted runs there, in order, soon. The
// loop outlives whoever posts.
#pragma once

#include <functional>

namespace sluice {

class Mailbox {
 public:
  virtual void post(std::function<void()> task) = 0;  // any thread

 protected:
  ~Mailbox() = default;
};

}  // namespace sluice
