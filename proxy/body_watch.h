// Looks for a block or a refusal in the body of one response while it streams through: the marker
// scan of its policy, behind the decoder that its coding needs. Keeps nothing of the body.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "policy/marker_scan.h"
#include "proxy/body_decoder.h"
#include "proxy/http/head.h"

namespace sluice {

class BodyWatch {
 public:
  BodyWatch() = default;  // sees nothing
  BodyWatch(MarkerScan scan, const Head& response);

  // Nothing more can be found: what follows need not be shown.
  bool done() const { return scan_.done(); }
  // The next bytes as the origin sent them. The marker that was found, once.
  std::optional<std::size_t> feed(std::string_view bytes);

 private:
  MarkerScan scan_;
  std::unique_ptr<BodyDecoder> decoder_;  // null: none is needed
};

// What the first bytes behind a head, as they came, already show.
std::optional<std::size_t> marker_at_hand(MarkerScan scan, const Head& response,
                                          std::string_view bytes);

}  // namespace sluice
