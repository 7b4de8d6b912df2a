#include "proxy/governor/rulebook.h"

#include <algorithm>

#include "policy/breaker.h"

namespace sluice {

Rulebook::Rulebook(PolicyLoad load) : load_(std::move(load)) {
  const auto builtin = builtin_body_markers();
  classifiers_.reserve(load_.set->rules_count());
  const auto take_policy = [&](const Policy& policy) {
    take_in(policy.rules, policy.name, builtin);
    for (const Role& role : policy.roles) take_in(role.rules, policy.name, builtin);
  };
  take_policy(load_.set->fallback());  // in the order in which the set counts them
  for (const auto& policy : load_.set->policies()) take_policy(*policy);
}

void Rulebook::take_in(const Rules& rules, std::string_view file,
                       const std::shared_ptr<const MarkerSet>& builtin) {
  longest_cooldown_ = std::max(longest_cooldown_, sluice::longest_cooldown(rules));
  auto classifier = Classifier::make(rules.classify, builtin);
  if (!classifier) {
    load_.problems.push_back({{std::string(file), 1, 1, ""}, classifier.error()});
    ClassifyRules without = rules.classify;
    without.markers.clear();
    classifier = Classifier::make(without, builtin);
  }
  classifiers_.push_back(std::move(*classifier));
}

Match Rulebook::match(std::string_view host, std::uint16_t port, std::string_view path) const {
  return of(load_.set->match(host, port, path));
}

Match Rulebook::of(const PolicyMatch& found) const {
  const Rules& rules = found.rules();
  return {nullptr, found.policy, found.role, &rules, &classifiers_[rules.number]};
}

Match Rulebook::renewed(const Match& old) const {
  PolicyMatch found{&load_.set->fallback(), nullptr};
  for (const auto& policy : load_.set->policies()) {
    if (policy->name == old.policy->name) found.policy = policy.get();
  }
  for (const Role& role : found.policy->roles) {
    if (old.role != nullptr && role.name == old.role->name) found.role = &role;
  }
  return of(found);
}

}  // namespace sluice
