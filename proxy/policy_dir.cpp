#include "proxy/policy_dir.h"

#include <algorithm>
#include <filesystem>

#include "proxy/config_reader.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 10000;

const PolicyFile* last_good(const PolicyLoad* last, const std::string& file) {
  if (last == nullptr) return nullptr;
  const auto found = std::find_if(last->in_force.begin(), last->in_force.end(),
                                  [&](const PolicyFile& known) { return known.file == file; });
  return found == last->in_force.end() ? nullptr : &*found;
}

void append(Diagnostics& to, const Diagnostics& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// One file on its way into the set: what it says now, and what it said when it was last good.
struct Candidate {
  PolicyReading now;
  const PolicyFile* before;
  bool unchanged() const {
    return now.problems.empty() && before != nullptr && now.read.policy == before->policy;
  }
};

bool take_in(PolicySet& set, const PolicyFile& file, PolicyLoad& out, Diagnostics* collisions) {
  const Diagnostics found = set.add(file);
  if (collisions != nullptr) append(*collisions, found);
  if (found.empty()) out.in_force.push_back(file);
  return found.empty();
}

}  // namespace

Result<std::vector<std::string>> policy_files(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code failed;
  fs::directory_iterator files(directory, failed);
  for (; !failed && files != fs::directory_iterator(); files.increment(failed)) {
    const std::string name = files->path().filename().string();
    // ".#x.toml" and "#x.toml#" are Emacs', ".x.toml.swp" Vim's; "x.toml~" does not end in .toml.
    if (name.starts_with('.') || name.starts_with('#') || !name.ends_with(".toml")) continue;
    std::error_code ignored;
    if (files->is_directory(ignored)) continue;
    if (out.size() == kMostFiles) return Error{"holds more than 10000 policies"};
    out.push_back(files->path().string());
  }
  if (failed) return Error{"cannot be read: " + failed.message()};
  std::sort(out.begin(), out.end());
  return out;
}

PolicyLoad load_policies(const std::string& directory, const Policy& base, const PolicyLoad* last) {
  PolicyLoad out;
  auto set = std::make_shared<PolicySet>(base);
  out.set = set;
  if (directory.empty()) return out;
  const Result<std::vector<std::string>> files = policy_files(directory);
  if (!files) {
    out.problems.push_back({{directory, 1, 1, ""}, files.error()});
    // A directory that cannot be listed for a moment has not lost its policies.
    if (last != nullptr) {
      out.set = last->set;
      out.in_force = last->in_force;
    }
    return out;
  }

  std::vector<Candidate> candidates;
  for (const std::string& file : *files) {
    const Result<std::string> text = read_text_file(file);
    Candidate candidate{{}, last_good(last, file)};
    if (text) {
      candidate.now = read_policy(*text, file, base);
    } else {
      candidate.now.problems.push_back({{file, 1, 1, ""}, text.error()});
    }
    append(out.problems, candidate.now.problems);
    candidates.push_back(std::move(candidate));
  }
  // Who is in force already comes first: a new file cannot push an old one out.
  std::stable_partition(candidates.begin(), candidates.end(),
                        [](const Candidate& candidate) { return candidate.unchanged(); });
  for (const Candidate& candidate : candidates) {
    const bool good = candidate.now.problems.empty();
    if (good && take_in(*set, candidate.now.read, out, &out.problems)) continue;
    if (candidate.before != nullptr) take_in(*set, *candidate.before, out, nullptr);
  }
  std::sort(out.in_force.begin(), out.in_force.end(),
            [](const PolicyFile& a, const PolicyFile& b) { return a.file < b.file; });
  return out;
}

}  // namespace sluice
