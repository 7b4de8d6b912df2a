#include "proxy/cli/exclusive.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "proxy/clock.h"
#include "store/blocking.h"
#include "store/lease.h"
#include "store/open.h"

namespace sluice {
namespace {

constexpr Duration kRenewAtLeast = 10s;

// For people: who to ask, and which process to look at. The run comes first: of a long text the
// store keeps the beginning.
std::string describe_owner(const std::string& run, const std::string& command) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const passwd* user = getpwuid(geteuid());
  return "run " + run + " of " + (user != nullptr ? user->pw_name : "?") + "@" + host.data() +
         ", process " + std::to_string(getpid()) + " (" + command + ")";
}

}  // namespace

Result<Exclusive::Taken> Exclusive::take(const LoadedConfig& loaded, const std::string& name,
                                         Duration ttl, const std::string& run,
                                         const std::string& command) {
  auto opened = open_store(loaded.config.store.url, loaded.state_dir, utc_now());
  if (!opened) return Error{opened.error()};
  std::unique_ptr<Exclusive> mine(new Exclusive(std::move(opened->store), "exclusive/" + name,
                                                describe_owner(run, command), ttl));
  const Instant asked = monotonic_now();
  const auto answer = wait_for([&](Completion done) {
    take_lease(*mine->store_, mine->name_, mine->owner_, clock_now(), ttl, std::move(done));
  });
  if (!answer) return Error{answer.error()};
  mine->renewed_ = mine->tried_ = asked;
  if (*answer == 1) return Taken{std::move(mine), {}};
  return Taken{nullptr, mine->holder()};
}

std::string Exclusive::holder() const {
  const auto held = find_lease(*store_, name_, clock_now());
  return held && *held ? (*held)->owner : "somebody who has just finished";
}

Exclusive::~Exclusive() {
  if (left_) return;
  [[maybe_unused]] const auto released =
      wait_for([this](Completion done) { release_lease(*store_, name_, owner_, std::move(done)); });
}

std::string Exclusive::renew() {
  const Instant now = monotonic_now();
  if (now - tried_ < std::min<Duration>(ttl_ / 3, kRenewAtLeast)) return {};
  tried_ = now;
  const auto answer = wait_for([this](Completion done) {
    take_lease(*store_, name_, owner_, clock_now(), ttl_, std::move(done));
  });
  if (answer && *answer != 1) return holder();
  if (answer) renewed_ = now;
  // A store in trouble is no loss before the lock has run out there.
  if (monotonic_now() - renewed_ < ttl_) return {};
  return "nobody can tell who: " + answer.error();
}

}  // namespace sluice
