// A timer that is moved often and rings seldom. Moving it later is one store: when the old moment
// comes it only goes back to sleep. Only the worker's thread may touch it.
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>

#include "policy/time.h"

namespace sluice {

class Deadline {
 public:
  class Handler {
   public:
    virtual void on_deadline() = 0;

   protected:
    ~Handler() = default;
  };

  Deadline(event_base* base, Handler& handler);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void set(Instant due, Instant now);
  void clear() { due_ = kNever; }

 private:
  static constexpr Instant kNever = Instant::max();
  void arm(Duration left);
  void on_timer();

  event event_;
  Handler& handler_;
  Instant due_ = kNever;
  Instant armed_ = kNever;  // when the event will fire
};

}  // namespace sluice
