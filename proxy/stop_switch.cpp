#include "proxy/stop_switch.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "proxy/stop_file.h"
#include "store/notice.h"

namespace sluice {
namespace {

// For file systems that report nothing, and for a directory that was replaced by another.
constexpr int kLookAgainMs = 250;

void drain(int fd) {
  char events[4096];
  while (::read(fd, events, sizeof events) > 0) {}
}

}  // namespace

StopSwitch::StopSwitch(std::string directory) : directory_(std::move(directory)) {
  const auto found = read_stop_file(directory_);
  if (!found) {
    spdlog::error("{}: nothing is forwarded until it can be", found.error());
    reason_ = found.error();
  } else if (*found) {
    reason_ = **found;
  }
  in_force_ = !found || found->has_value();
}

StopSwitch::~StopSwitch() { leave(); }

void StopSwitch::leave() {
  if (!thread_.joinable()) return;
  leaving_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void StopSwitch::watch(OnChange on_change) {
  on_change_ = std::move(on_change);
  wake_ = OwnedSocket(eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread([this] { follow(); });
}

void StopSwitch::follow() {
  const int notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (notify >= 0) {
    inotify_add_watch(notify, directory_.c_str(),
                      IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE);
  }
  if (in_force()) on_change_(true);
  pollfd waits[] = {{wake_.get(), POLLIN, 0}, {notify, POLLIN, 0}};
  for (;;) {
    ::poll(waits, 2, kLookAgainMs);
    if (leaving_) break;
    drain(notify);
    if (look()) on_change_(in_force());
  }
  if (notify >= 0) ::close(notify);
}

bool StopSwitch::look() {
  const auto found = read_stop_file(directory_);
  if (!found) return false;
  {
    const std::lock_guard guard(mutex_);
    reason_ = found->value_or("");
  }
  return in_force_.exchange(found->has_value()) != found->has_value();
}

std::string StopSwitch::reason() const {
  const std::lock_guard guard(mutex_);
  return reason_;
}

Refusal StopSwitch::refusal() const {
  const std::string why = reason();
  Refusal out{503, "emergency-stop", "http_request_denied",
              "an operator has stopped all traffic" + (why.empty() ? "" : " (" + why + ")") +
                  ": `sluice resume` ends it"};
  out.retry_after_s = 60;
  out.hopeless = true;
  out.override_command = "sluice resume";
  return out;
}

Event stop_event(bool in_force, const std::string& reason, UtcTime now) {
  if (!in_force) {
    return {now, EventKind::operator_act, "", "the emergency stop is over", EventMark::ends};
  }
  const std::string why = reason.empty() ? "" : " (" + reason + ")";
  return {now, EventKind::operator_act, "", "emergency stop: nothing is forwarded" + why,
          EventMark::begins};
}

void record_stop(Store& store, bool in_force, const Event& event, Completion done) {
  append_once(store, "emergency-stop", in_force ? "in force" : "over", event, std::move(done));
}

}  // namespace sluice
