// The policies in force, ready for use: which one answers for a request, and the classifier that
// judges its response. Immutable, shared by all threads; a reload makes another one, and whoever
// still holds a match keeps the old one alive.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "policy/classify.h"
#include "policy/policy_set.h"
#include "proxy/policy_dir.h"

namespace sluice {

class Rulebook;

struct Match {
  std::shared_ptr<const Rulebook> book;  // owns the rest
  const Policy* policy = nullptr;
  const Role* role = nullptr;  // null: none
  const Rules* rules = nullptr;
  const Classifier* classifier = nullptr;
};

class Rulebook {
 public:
  // A policy whose markers are too much for one table keeps the built-in ones and is named in the
  // load's problems.
  explicit Rulebook(PolicyLoad load);

  // All but the book itself.
  Match match(std::string_view host, std::uint16_t port, std::string_view path) const;

  // What became of the rules that an older book's match was under: those of the same file and role,
  // else of the file, else those of hosts without a policy. All but the book itself.
  Match renewed(const Match& old) const;

  const PolicyLoad& load() const { return load_; }
  Duration longest_cooldown() const { return longest_cooldown_; }

 private:
  Match of(const PolicyMatch& found) const;
  void take_in(const Rules& rules, std::string_view file,
               const std::shared_ptr<const MarkerSet>& builtin);

  PolicyLoad load_;
  std::vector<Classifier> classifiers_;  // by Rules::number
  Duration longest_cooldown_{};
};

}  // namespace sluice
