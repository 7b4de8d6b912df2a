// A body gives the same marker however it is cut into pieces, and none after the first.
#include "policy/marker_scan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/classify.h"

// The first bytes choose status, limit and the size of the pieces; the rest is the body.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  static const auto set = builtin_body_markers();
  if (size < 3) return 0;
  constexpr std::uint16_t statuses[] = {200, 400, 403, 429, 503};
  const std::uint16_t status = statuses[data[0] % std::size(statuses)];
  const std::size_t limit = std::size_t{data[1]} * 16, piece = std::size_t{data[2]} % 40 + 1;
  const std::string_view body(reinterpret_cast<const char*>(data + 3), size - 3);

  MarkerScan whole(set, status, limit), pieces(set, status, limit);
  const auto at_once = whole.feed(body);
  std::optional<std::size_t> in_pieces;
  for (std::size_t i = 0; i < body.size(); i += piece) {
    const auto found = pieces.feed(body.substr(i, piece));
    if (found && in_pieces) std::abort();
    if (found) in_pieces = found;
  }
  if (at_once != in_pieces) std::abort();
  if (at_once && !(whole.done() && pieces.done())) std::abort();
  return 0;
}
