#include "proxy/net/deadline.h"

#include "proxy/clock.h"

namespace sluice {

Deadline::Deadline(event_base* base, Handler& handler) : handler_(handler) {
  evtimer_assign(
      &event_, base, [](int, short, void* self) { static_cast<Deadline*>(self)->on_timer(); },
      this);
}

Deadline::~Deadline() { event_del(&event_); }

void Deadline::set(Instant due, Instant now) {
  due_ = due;
  if (due_ >= armed_) return;
  armed_ = due;
  arm(due - now);
}

void Deadline::arm(Duration left) {
  if (left < Duration::zero()) left = Duration::zero();
  const timeval wait{static_cast<time_t>(left.count() / 1'000'000),
                     static_cast<suseconds_t>(left.count() % 1'000'000)};
  event_add(&event_, &wait);
}

void Deadline::on_timer() {
  armed_ = kNever;
  if (due_ == kNever) return;
  const Instant now = monotonic_now();
  if (due_ > now) {
    set(due_, now);
    return;
  }
  due_ = kNever;
  handler_.on_deadline();
}

}  // namespace sluice
