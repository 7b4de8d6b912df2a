#include "proxy/policy_watch.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "proxy/clock.h"
#include "proxy/tls/file_stamp.h"

namespace sluice {
namespace {

constexpr int kLookAgain = 500;  // ms: whether the directory is there, and still the same one
constexpr int kSettle = 50;      // ms without a change: editors write in several steps
constexpr Duration kMostSettling = 500ms;  // then it is read all the same: somebody always writes
constexpr Duration kHookEvery = 5s;
constexpr unsigned kChanges = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE |
                              IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;

void note(Governor& governor, const std::string& text) {
  governor.store().append({utc_now(), EventKind::policy, {}, text}, {});
}

bool holds(const std::vector<PolicyFile>& files, const PolicyFile& wanted) {
  return std::any_of(files.begin(), files.end(), [&](const PolicyFile& file) {
    return file.file == wanted.file && file.policy == wanted.policy;
  });
}

}  // namespace

PolicyWatch::PolicyWatch(std::string directory, Policy base, Governor& governor, Hooks hooks)
    : directory_(std::move(directory)),
      base_(std::move(base)),
      governor_(governor),
      hooks_(std::move(hooks)),
      inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      thread_([this] { run(); }) {}

PolicyWatch::~PolicyWatch() {
  ending_ = true;
  reload();
  thread_.join();
}

void PolicyWatch::reload() {
  asked_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

// Another directory in its place, behind a symbolic link or by a rename, sends no event.
void PolicyWatch::watch_directory() {
  if (directory_.empty()) return;
  struct stat now {};
  const bool there = stat(directory_.c_str(), &now) == 0;
  if (watching_ && there && now.st_dev == device_ && now.st_ino == inode_) return;
  if (watching_) inotify_rm_watch(inotify_.get(), watch_);
  device_ = now.st_dev;
  inode_ = now.st_ino;
  watch_ = inotify_add_watch(inotify_.get(), directory_.c_str(), kChanges);
  watching_ = watch_ >= 0;
  if (watching_) asked_ = true;  // what changed before the watch began
}

// A file that is written or replaced in another directory sends no event here.
void PolicyWatch::look_behind_links() {
  if (directory_.empty()) return;
  std::string now;
  if (const auto files = policy_files(directory_)) {
    std::error_code none;
    for (const std::string& file : *files)
      if (std::filesystem::is_symlink(file, none)) now += file + " " + file_stamp(file) + "\n";
  }
  if (std::exchange(linked_, now) != now) asked_ = true;
}

// True if anything has changed since the last call.
bool PolicyWatch::read_changes() {
  alignas(inotify_event) char buffer[4096];
  bool changed = false;
  ssize_t size;
  while ((size = ::read(inotify_.get(), buffer, sizeof buffer)) > 0) {
    changed = true;
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      if (event->wd == watch_ && (event->mask & (IN_IGNORED | IN_MOVE_SELF)) != 0)
        watching_ = false;
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
  std::uint64_t count;
  [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
  return asked_.exchange(false) || changed;
}

void PolicyWatch::run() {
  pollfd ready[] = {{inotify_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  Instant hooked = monotonic_now();
  while (!ending_) {
    watch_directory();
    look_behind_links();
    if (const Instant now = monotonic_now(); now - hooked >= kHookEvery) {
      hooks_.now_and_then();
      hooked = now;
    }
    if (!asked_) poll(ready, 2, kLookAgain);
    if (!read_changes()) continue;
    const Instant latest = monotonic_now() + kMostSettling;
    while (!ending_ && monotonic_now() < latest && poll(ready, 1, kSettle) > 0) read_changes();
    if (!ending_) load();
  }
}

void PolicyWatch::load() {
  const auto before = governor_.rules();
  const auto after =
      std::make_shared<const Rulebook>(load_policies(directory_, base_, &before->load()));
  if (after->load().problems == before->load().problems &&
      after->load().in_force.size() == before->load().in_force.size() &&
      std::all_of(after->load().in_force.begin(), after->load().in_force.end(),
                  [&](const PolicyFile& file) { return holds(before->load().in_force, file); })) {
    return;
  }
  hooks_.before_in_force(*after->load().set);
  report(before->load(), after->load());
  governor_.replace_rules(after);
}

void PolicyWatch::report(const PolicyLoad& before, const PolicyLoad& after) {
  for (const Diagnostic& problem : after.problems) {
    if (std::find(before.problems.begin(), before.problems.end(), problem) != before.problems.end())
      continue;
    spdlog::error("refused, the last good version stays: {}", render(problem));
    note(governor_,
         "refused: " + problem.file + ":" + std::to_string(problem.line) + ": " + problem.message);
  }
  for (const PolicyFile& file : after.in_force) {
    if (holds(before.in_force, file)) continue;
    spdlog::info("policy {} is in force", file.file);
    note(governor_, file.file + " is in force");
  }
  for (const PolicyFile& file : before.in_force) {
    const auto same = [&](const PolicyFile& other) { return other.file == file.file; };
    if (std::any_of(after.in_force.begin(), after.in_force.end(), same)) continue;
    spdlog::info("policy {} is no longer in force", file.file);
    note(governor_, file.file + " is no longer in force");
  }
}

}  // namespace sluice
