// Judges a response: success, neutral, rate-limited, a block, an error. The head is judged when it
// arrives, the body while it streams by. One Classifier per set of rules, immutable, shared by all
// threads. Looks only at the fields a rule names: never for a marker across all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/marker_scan.h"
#include "policy/outcome.h"
#include "policy/policy.h"
#include "policy/result.h"
#include "policy/signal.h"
#include "policy/time.h"

namespace sluice {

// The body markers that every policy has. Built once, then given to every Classifier.
std::shared_ptr<const MarkerSet> builtin_body_markers();

class Classifier {
 public:
  static Result<Classifier> make(const ClassifyRules& rules,
                                 std::shared_ptr<const MarkerSet> builtin);

  // A failure is to be observed at once. What scan() finds may still show it to be a worse one,
  // which amends it; anything else may turn into one, so observe that when the scan is done.
  Outcome head(std::uint16_t status, const FieldsView& fields, UtcTime now) const;

  // To be fed the decoded body. Finds nothing in what is not text.
  MarkerScan scan(std::uint16_t status, std::string_view content_type) const;

  // What a head turns into when its body holds this marker.
  Outcome body(Outcome head, std::size_t marker) const;

 private:
  struct FieldMarker {
    std::string name;  // lower case
    std::string text;  // lower case; empty: the field is enough
    StatusSet status;
  };

  Classifier() = default;
  const FieldMarker* find_field_marker(std::uint16_t status, const FieldsView& fields) const;
  OutcomeKind kind_of(std::uint16_t status, const Signal& signal) const;

  StatusSet rate_limited_, server_error_;
  std::vector<FieldMarker> field_markers_;
  std::shared_ptr<const MarkerSet> body_markers_;
  std::size_t scan_ = 0;
};

// Text, JSON, XML, scripts and forms; also what does not say what it is.
bool is_textual(std::string_view content_type);

// For people: what is not printable ASCII becomes a space, and it ends after `limit` bytes.
std::string printable(std::string_view bytes, std::size_t limit);

}  // namespace sluice
