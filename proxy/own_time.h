// How long the proxy itself took over a request: the time in which it waited for nobody else. A
// plain value; the time is passed in.
#pragma once

#include "policy/time.h"

namespace sluice {

class OwnTime {
 public:
  void start(Instant now) {
    own_ = {};
    since_ = now;
  }
  void wait(Instant now) {  // for somebody else, from now on
    if (since_ != Instant{}) own_ += now - since_;
    since_ = {};
  }
  void go_on(Instant now) {  // nobody is waited for any more
    wait(now);
    since_ = now;
  }
  bool running() const { return since_ != Instant{}; }
  Duration stop(Instant now) {
    wait(now);
    return own_;
  }

 private:
  Instant since_{};  // Instant{}: it waits, or has been stopped
  Duration own_{};
};

}  // namespace sluice
