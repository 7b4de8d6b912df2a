// Wakes gates at the times they asked for, on a thread of its own, and calls back about once a
// second in between. Asking is for any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "policy/time.h"

namespace sluice {

class Gate;

class Agenda {
 public:
  using Wake = std::function<void(Gate&)>;
  using EachSecond = std::function<void()>;

  Agenda(Wake wake, EachSecond each_second);
  ~Agenda();
  Agenda(const Agenda&) = delete;
  Agenda& operator=(const Agenda&) = delete;

  void add(std::weak_ptr<Gate> gate, Instant when);

 private:
  struct Entry {
    Instant when;
    std::weak_ptr<Gate> gate;
    bool operator>(const Entry& other) const { return when > other.when; }
  };
  void run();

  const Wake wake_;
  const EachSecond each_second_;
  std::mutex mutex_;  // guards the two below
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  bool ending_ = false;
  std::condition_variable changed_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace sluice
