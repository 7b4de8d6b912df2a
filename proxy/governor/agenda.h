// Wakes gates at the times they asked for, on a thread of its own, and calls back about once a
// second in between. Asking is for any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

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

  // Keeps the earliest time of each gate only: a gate that is woken asks anew.
  void add(const std::weak_ptr<Gate>& gate, Instant when);

 private:
  using Entries = std::multimap<Instant, std::weak_ptr<Gate>>;
  void run();

  const Wake wake_;
  const EachSecond each_second_;
  std::mutex mutex_;  // guards the three below
  Entries entries_;
  std::map<std::weak_ptr<Gate>, Entries::iterator, std::owner_less<>> entry_of_;
  bool ending_ = false;
  std::condition_variable changed_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace sluice
