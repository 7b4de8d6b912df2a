// Any bytes in a coding give the same marker however they are cut, and no more is unpacked than
// `scan` asks for; memory stays bounded.
#include "proxy/body_watch.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "policy/classify.h"

// The first bytes choose the coding, the limit and the size of the pieces; the rest is the body.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  static const auto set = builtin_body_markers();
  if (size < 3) return 0;
  constexpr std::string_view codings[] = {"identity", "gzip",     "deflate",      "br",
                                          "zstd",     "gzip, br", "zstd, deflate"};
  const std::string_view coding = codings[data[0] % std::size(codings)];
  const std::size_t limit = std::size_t{data[1]} * 256, piece = std::size_t{data[2]} % 40 + 1;
  const std::string_view body(reinterpret_cast<const char*>(data + 3), size - 3);

  Head head;
  head.status = 403;
  head.fields.push_back({"Content-Encoding", coding, FieldName::content_encoding});
  BodyWatch whole(MarkerScan(set, head.status, limit), head);
  BodyWatch pieces(MarkerScan(set, head.status, limit), head);
  const auto at_once = whole.feed(body);
  std::optional<std::size_t> in_pieces;
  for (std::size_t i = 0; i < body.size(); i += piece) {
    const auto found = pieces.feed(body.substr(i, piece));
    if (found && in_pieces) std::abort();
    if (found) in_pieces = found;
  }
  // zstd keeps back what it has unpacked when broken bytes follow in the same call.
  const bool exact = coding.find("zstd") == std::string_view::npos;
  if (exact && at_once != in_pieces) std::abort();

  const auto decoder = make_decoder(coding, SIZE_MAX);
  if (!decoder) return 0;
  std::size_t seen = 0;
  decoder->feed(body, [&](std::string_view part) {
    if (part.size() > BodyDecoder::kPiece) std::abort();
    seen += part.size();
    return seen < limit;
  });
  if (seen > limit + BodyDecoder::kPiece) std::abort();
  return 0;
}
