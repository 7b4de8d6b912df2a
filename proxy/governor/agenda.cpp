#include "proxy/governor/agenda.h"

#include <algorithm>

#include "proxy/clock.h"

namespace sluice {

Agenda::Agenda(Wake wake, EachSecond each_second)
    : wake_(std::move(wake)), each_second_(std::move(each_second)), thread_([this] { run(); }) {}

Agenda::~Agenda() {
  {
    const std::lock_guard guard(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Agenda::add(std::weak_ptr<Gate> gate, Instant when) {
  bool first;
  {
    const std::lock_guard guard(mutex_);
    first = entries_.empty() || when < entries_.top().when;
    entries_.push({when, std::move(gate)});
  }
  if (first) changed_.notify_one();
}

void Agenda::run() {
  Instant second = monotonic_now() + 1s;
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const Instant now = monotonic_now();
    if (now >= second) {
      lock.unlock();
      each_second_();
      lock.lock();
      second = monotonic_now() + 1s;
      continue;
    }
    if (entries_.empty() || entries_.top().when > now) {
      const Instant due = entries_.empty() ? second : std::min(second, entries_.top().when);
      changed_.wait_for(lock, due - now);
      continue;
    }
    const auto gate = entries_.top().gate.lock();
    entries_.pop();
    if (!gate) continue;
    lock.unlock();
    wake_(*gate);
    lock.lock();
  }
}

}  // namespace sluice
