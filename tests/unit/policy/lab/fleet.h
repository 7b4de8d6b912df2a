// Eight naive clients, two requests each, through breaker, pacer, queue and retries, against one
// emulated origin: a discrete-event simulation, the same for the same seed. The origin's answers
// are real header fields, read by the real classifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/breaker.h"
#include "policy/classify.h"
#include "policy/pacer.h"
#include "unit/policy/lab/profile.h"

namespace sluice::lab {

// The policy whose times fit the lab's, in which one second stands for ten real ones.
Rules lab_rules();

struct Batch {
  int tasks = 0, completed = 0;
  int rejected = 0;       // by the origin
  int client_errors = 0;  // answers that were no answer to a task
  int outside_refused = 0;
  double elapsed = 0;  // seconds
  double ratio = 0;    // over the oracle's time
  double banned = 0;   // seconds of ban handed out
  double jain = 1;     // fairness when the first client was done
  std::vector<double> rejected_at;
};

class Fleet {
 public:
  struct Options {
    std::uint64_t seed = 1;
    double skew = 0;          // of the origin's clock against ours, seconds
    double network = 0.0004;  // one way, seconds; it varies
    double deadline = 20;
    int clients = 8, workers = 2;
    bool trace = false;
  };
  Fleet(Rules rules, Profile profile, Options options);

  // The origin starts afresh; what the proxy has learned stays.
  Batch play();
  void pause(double seconds) { now_ += seconds; }
  void restart();  // of the proxy

  const PaceState& pace() const { return pace_; }
  PaceState& pace() { return pace_; }
  const HostState& breaker() const { return breaker_; }
  Instant now() const;

 private:
  friend class Round;
  Rules rules_;
  Profile profile_;
  Options options_;
  Classifier classifier_;
  PaceState pace_;
  HostState breaker_;
  double now_ = 1000.37;  // not a whole second
  std::uint64_t random_;
};

}  // namespace sluice::lab
