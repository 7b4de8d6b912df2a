#include "policy/policy_set.h"

#include <algorithm>

#include "policy/path_pattern.h"

namespace sluice {
namespace {

std::size_t label_count(std::string_view name) {
  return 1 + static_cast<std::size_t>(std::count(name.begin(), name.end(), '.'));
}

const Role* find_role(const Policy& policy, std::string_view path) {
  const Role* best = nullptr;
  std::string_view best_pattern;
  for (const Role& role : policy.roles) {
    for (const std::string& pattern : role.paths) {
      if (best != nullptr && !more_specific_path(pattern, best_pattern)) continue;
      if (!path_matches(pattern, path)) continue;
      best = &role;
      best_pattern = pattern;
    }
  }
  return best;
}

}  // namespace

PolicySet::PolicySet(Policy fallback) {
  fallback.name = "default";
  fallback_ = numbered(std::move(fallback));
}

std::shared_ptr<const Policy> PolicySet::numbered(Policy policy) {
  policy.rules.number = rules_count_++;
  for (Role& role : policy.roles) role.rules.number = rules_count_++;
  return std::make_shared<const Policy>(std::move(policy));
}

PolicySet::PathList& PolicySet::Slot::list(std::uint16_t port) {
  if (port == 0) return any_port;
  for (auto& [known, paths] : by_port) {
    if (known == port) return paths;
  }
  return by_port.emplace_back(port, PathList{}).second;
}

namespace {

// What is inside a tunnel may fall under any of them: one that must not be looked into keeps it
// shut, and one that must be looked into opens it.
template <class PathList>
const Policy* for_any_path(const PathList& list) {
  for (const bool word : {false, true}) {
    for (auto entry = list.rbegin(); entry != list.rend(); ++entry) {
      if (entry->policy->intercept == word) return entry->policy;
    }
  }
  return list.empty() ? nullptr : list.back().policy;
}

}  // namespace

const Policy* PolicySet::Slot::find(std::uint16_t port, std::string_view path) const {
  if (always != nullptr) return always;
  const auto in = [&](const PathList& list) -> const Policy* {
    if (path.empty()) return for_any_path(list);
    for (const PathEntry& entry : list) {
      if (path_matches(entry.path, path)) return entry.policy;
    }
    return nullptr;
  };
  for (const auto& [known, paths] : by_port) {
    if (known != port) continue;
    if (const Policy* policy = in(paths)) return policy;
  }
  return in(any_port);
}

PolicySet::Slot& PolicySet::slot(const HostPattern& pattern) {
  switch (pattern.kind) {
    case HostPattern::Kind::exact: return exact_[pattern.name];
    case HostPattern::Kind::suffix: return suffix_[pattern.name];
    case HostPattern::Kind::any: break;
  }
  return any_;
}

Diagnostics PolicySet::add(const PolicyFile& file) {
  Diagnostics collisions;
  std::vector<HostPattern> patterns;
  for (std::size_t i = 0; i < file.policy.hosts.size(); ++i) {
    Result<HostPattern> pattern = parse_host_pattern(file.policy.hosts[i]);
    if (!pattern) continue;  // cannot be: read_policy() wrote it
    patterns.push_back(std::move(*pattern));
    for (const PathEntry& taken : slot(patterns.back()).list(patterns.back().port)) {
      const auto& paths = file.policy.paths;
      if (std::find(paths.begin(), paths.end(), taken.path) == paths.end()) continue;
      const std::string what =
          "\"" + file.policy.hosts[i] + "\"" +
          (matches_all_paths(taken.path) ? "" : " with path \"" + taken.path + "\"");
      Place place = i < file.hosts.size() ? file.hosts[i] : Place{file.file, 1, 1, ""};
      collisions.push_back({std::move(place), what + " is already in " + taken.file});
    }
  }
  if (!collisions.empty()) return collisions;

  policies_.push_back(numbered(file.policy));
  const Policy* policy = policies_.back().get();
  for (const HostPattern& pattern : patterns) {
    Slot& claimed = slot(pattern);
    PathList& list = claimed.list(pattern.port);
    for (const std::string& path : policy->paths) list.push_back({path, policy, file.file});
    std::sort(list.begin(), list.end(), [](const PathEntry& a, const PathEntry& b) {
      return more_specific_path(a.path, b.path);
    });
    const bool only = claimed.by_port.empty() && list.size() == 1;
    claimed.always = only && matches_all_paths(list.front().path) ? policy : nullptr;
    if (pattern.kind == HostPattern::Kind::suffix) {
      longest_suffix_ = std::max(longest_suffix_, label_count(pattern.name));
    }
  }
  return {};
}

const Policy* PolicySet::find_by_suffix(std::string_view name, std::uint16_t port,
                                        std::string_view path) const {
  std::size_t labels = label_count(name);
  while (labels > 1) {
    name.remove_prefix(name.find('.') + 1);
    --labels;
    if (labels > longest_suffix_) continue;
    const Slot* const slot = suffix_.find(name);
    if (slot == nullptr) continue;
    if (const Policy* policy = slot->find(port, path)) return policy;
  }
  return nullptr;
}

const Policy* PolicySet::find_policy(std::string_view name, std::uint16_t port,
                                     std::string_view path) const {
  if (const Slot* slot = exact_.find(name)) {
    if (const Policy* policy = slot->find(port, path)) return policy;
  }
  if (!suffix_.empty()) {
    if (const Policy* policy = find_by_suffix(name, port, path)) return policy;
  }
  return any_.find(port, path);
}

PolicyMatch PolicySet::match(std::string_view host, std::uint16_t port,
                             std::string_view path) const {
  HostBuffer buffer;
  const std::string_view name = normalise_host(host, buffer);
  const Policy* policy = find_policy(name, port, path);
  if (policy == nullptr) return {fallback_.get(), nullptr};
  return {policy, path.empty() ? nullptr : find_role(*policy, path)};
}

}  // namespace sluice
