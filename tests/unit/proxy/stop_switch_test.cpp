// The emergency stop: the file, the thread that follows it, and the one event of each change.
#include "proxy/stop_switch.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <vector>

#include "proxy/stop_file.h"
#include "store/blocking.h"
#include "store/memory.h"
#include "unit/store/support.h"

using namespace sluice;
using sluice::testing::TempDirectory;
namespace fs = std::filesystem;

namespace {

// What a watcher said, for a thread that waits for it.
class Changes {
 public:
  StopSwitch::OnChange listener() {
    return [this](bool in_force) {
      const std::lock_guard guard(mutex_);
      told_.push_back(in_force);
      wake_.notify_all();
    };
  }
  // False: it did not come in good time.
  bool wait_for(const std::vector<bool>& wanted) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, 10s, [&] { return told_ == wanted; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<bool> told_;
};

std::string reason_in(const TempDirectory& directory) {
  const auto found = read_stop_file(directory.path());
  if (!found) return "(" + found.error() + ")";
  return found->value_or("(none)");
}

}  // namespace

TEST_CASE("stop file: written, read, removed") {
  const TempDirectory directory;
  CHECK(reason_in(directory) == "(none)");
  REQUIRE(write_stop_file(directory.path(), "runs wild"));
  CHECK(reason_in(directory) == "runs wild");
  REQUIRE(write_stop_file(directory.path(), "again"));
  CHECK(reason_in(directory) == "again");
  CHECK(*remove_stop_file(directory.path()));
  CHECK_FALSE(*remove_stop_file(directory.path()));
  CHECK(reason_in(directory) == "(none)");
}

TEST_CASE("stop file: whatever has the name is a stop") {
  const TempDirectory directory;
  const std::string path = directory.path() + "/EMERGENCY_STOP";
  SUBCASE("touch") {
    std::ofstream{path};
    CHECK(reason_in(directory) == "");
  }
  SUBCASE("a directory") {
    fs::create_directory(path);
    CHECK(reason_in(directory) == "");
  }
  SUBCASE("a link to nowhere") {
    fs::create_symlink("/nowhere", path);
    CHECK(reason_in(directory) == "");
  }
  SUBCASE("hostile bytes become one short printable line") {
    std::ofstream(path) << "\x1b[31mred\x80 " << std::string(5000, 'x') << "\nsecond line";
    const std::string reason = reason_in(directory);
    CHECK(reason.starts_with(" [31mred  xxx"));
    CHECK(reason.size() == kMaxStopReason);
  }
}

TEST_CASE("stop file: made together with its directory, not through a link") {
  const TempDirectory directory;
  REQUIRE(write_stop_file(directory.path() + "/a/b", "early"));
  CHECK(fs::exists(directory.path() + "/a/b/EMERGENCY_STOP"));
  fs::create_symlink(directory.path() + "/victim", directory.path() + "/EMERGENCY_STOP");
  CHECK(write_stop_file(directory.path(), "x"));
  CHECK_FALSE(fs::exists(directory.path() + "/victim"));
  CHECK_FALSE(fs::is_symlink(directory.path() + "/EMERGENCY_STOP"));
  CHECK(reason_in(directory) == "x");
}

TEST_CASE("stop file: a second order changes the reason, unless it has none") {
  const TempDirectory directory;
  REQUIRE(write_stop_file(directory.path(), "runs wild"));
  REQUIRE(write_stop_file(directory.path(), ""));
  CHECK(reason_in(directory) == "runs wild");
  REQUIRE(write_stop_file(directory.path(), "still does"));
  CHECK(reason_in(directory) == "still does");
}

TEST_CASE("emergency stop: follows the file") {
  const TempDirectory directory;
  Changes changes;
  StopSwitch stop(directory.path());
  CHECK_FALSE(stop.in_force());
  stop.watch(changes.listener());
  REQUIRE(write_stop_file(directory.path(), "runs wild"));
  CHECK(changes.wait_for({true}));
  CHECK(stop.in_force());
  REQUIRE(remove_stop_file(directory.path()));
  CHECK(changes.wait_for({true, false}));
  CHECK_FALSE(stop.in_force());
  std::ofstream{directory.path() + "/EMERGENCY_STOP"};
  CHECK(changes.wait_for({true, false, true}));
}

TEST_CASE("emergency stop: one that was set while nobody ran is in force at once") {
  const TempDirectory directory;
  REQUIRE(write_stop_file(directory.path(), "at night"));
  Changes changes;
  StopSwitch stop(directory.path());
  CHECK(stop.in_force());
  CHECK(stop.reason() == "at night");
  stop.watch(changes.listener());
  CHECK(changes.wait_for({true}));
}

TEST_CASE("emergency stop: a state directory that is replaced by another is followed") {
  const TempDirectory directory;
  const std::string state = directory.path() + "/state";
  Changes changes;
  StopSwitch stop(state);  // not there yet
  CHECK_FALSE(stop.in_force());
  stop.watch(changes.listener());
  REQUIRE(write_stop_file(state, ""));
  CHECK(changes.wait_for({true}));
  fs::rename(state, directory.path() + "/old");
  CHECK(changes.wait_for({true, false}));
  REQUIRE(write_stop_file(state, ""));
  CHECK(changes.wait_for({true, false, true}));
}

TEST_CASE("emergency stop: what cannot be looked at stops") {
  const TempDirectory directory;
  fs::create_symlink("loop", directory.path() + "/loop");
  StopSwitch stop(directory.path() + "/loop");
  CHECK(stop.in_force());
}

TEST_CASE("emergency stop: the refusal says why and how it ends") {
  const TempDirectory directory;
  REQUIRE(write_stop_file(directory.path(), "runs wild"));
  const Refusal refusal = StopSwitch(directory.path()).refusal();
  CHECK(refusal.status == 503);
  CHECK(refusal.reason == "emergency-stop");
  CHECK(refusal.detail ==
        "an operator has stopped all traffic (runs wild): `sluice resume` ends it");
  const std::string reply = render(refusal, {ReplyFormat::json, false, false, "now"});
  CHECK(reply.find("X-Should-Retry: false\r\n") != std::string::npos);
  CHECK(reply.find("Retry-After: 60\r\n") != std::string::npos);
  CHECK(reply.find("\"override\": \"sluice resume\"") != std::string::npos);
}

TEST_CASE("emergency stop: one event for each change, however many see it") {
  MemoryStore store;
  const UtcTime noon{12h};
  for (const bool in_force : {true, true, true, false, false, true}) {
    const Event event = stop_event(in_force, "runs wild", noon);
    const auto recorded =
        wait_for([&](Completion done) { record_stop(store, in_force, event, std::move(done)); });
    CHECK(recorded);
  }
  const auto events = store.events(0, 100);
  REQUIRE(events);
  REQUIRE(events->size() == 3);
  CHECK((*events)[0].event.text == "emergency stop: nothing is forwarded (runs wild)");
  CHECK((*events)[0].event.kind == EventKind::operator_act);
  CHECK((*events)[1].event.text == "the emergency stop is over");
}
