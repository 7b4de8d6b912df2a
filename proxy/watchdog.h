// Whether every worker's loop still turns. Each round asks all of them to run a job; whoever has
// not run the last one by the next round hangs. Knows neither clock nor workers: main thread,
// except for the answers, which are atomic.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace sluice {

class Watchdog {
 public:
  using Ask = std::function<void(std::function<void()>)>;  // runs the job on that worker's thread
  explicit Watchdog(std::vector<Ask> workers);

  // True when all have answered what the last round asked. Asks again only then: a loop that hangs
  // does not collect questions.
  bool round();

 private:
  std::vector<Ask> workers_;
  // How many have yet to answer. A job may outlive us.
  std::shared_ptr<std::atomic<std::size_t>> missing_;
};

}  // namespace sluice
