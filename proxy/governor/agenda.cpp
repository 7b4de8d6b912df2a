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

void Agenda::add(const std::weak_ptr<Gate>& gate, Instant when) {
  bool first;
  {
    const std::lock_guard guard(mutex_);
    const auto [place, is_new] = entry_of_.try_emplace(gate);
    if (!is_new && place->second->first <= when) return;
    if (!is_new) entries_.erase(place->second);
    place->second = entries_.emplace(when, gate);
    first = place->second == entries_.begin();
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
    const auto next = entries_.begin();
    if (next == entries_.end() || next->first > now) {
      const Instant due = next == entries_.end() ? second : std::min(second, next->first);
      changed_.wait_for(lock, due - now);
      continue;
    }
    const auto gate = next->second.lock();
    entry_of_.erase(next->second);
    entries_.erase(next);
    if (!gate) continue;
    lock.unlock();
    wake_(*gate);
    lock.lock();
  }
}

}  // namespace sluice
