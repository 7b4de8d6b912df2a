#include "proxy/signals.h"

#include <csignal>
#include <initializer_list>

namespace sluice {
namespace {

sigset_t steering_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

}  // namespace

void take_over_signals() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a failed write, not the end
  const sigset_t set = steering_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

SteeringSignal next_signal(Duration at_most) {
  const sigset_t set = steering_signals();
  const timespec left{static_cast<time_t>(at_most / 1s),
                      static_cast<long>(at_most % 1s / 1us * 1000)};
  const int number = sigtimedwait(&set, nullptr, &left);
  if (number <= 0) return SteeringSignal::none;
  return number == SIGHUP ? SteeringSignal::reload : SteeringSignal::stop;
}

}  // namespace sluice
