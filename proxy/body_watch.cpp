#include "proxy/body_watch.h"

#include <algorithm>
#include <string>

#include "proxy/http/chunks.h"

namespace sluice {
namespace {

// What a coding takes for each byte that is to be searched, and at least: small pieces that were
// flushed one by one take more than they hold, but not that much.
constexpr std::size_t kCodedTimes = 16, kLeastCoded = 64 * 1024;
constexpr std::size_t kTrailerLimit = 4096;  // nobody looks at them here

// Several lines are one list (RFC 9110 §5.3).
std::string codings_of(const Head& response) {
  std::string all;
  for (const Field& field : response.fields) {
    if (field.id != FieldName::content_encoding) continue;
    if (!all.empty()) all += ',';
    all += field.value;
  }
  return all;
}

}  // namespace

BodyWatch::BodyWatch(MarkerScan scan, const Head& response) : scan_(std::move(scan)) {
  if (scan_.done()) return;
  const std::string codings = codings_of(response);
  if (codings.empty() || equals_ignoring_case(trim(codings), "identity")) return;
  decoder_ = make_decoder(codings, std::max(scan_.left() * kCodedTimes, kLeastCoded));
  if (!decoder_) scan_ = {};
}

std::optional<std::size_t> BodyWatch::feed(std::string_view bytes) {
  if (scan_.done()) return std::nullopt;
  if (!decoder_) return scan_.feed(bytes);
  std::optional<std::size_t> found;
  const bool more = decoder_->feed(bytes, [&](std::string_view piece) {
    found = scan_.feed(piece);
    return !found && !scan_.done();
  });
  if (!more) scan_ = {};
  return found;
}

std::optional<std::size_t> marker_at_hand(MarkerScan scan, const Head& response,
                                          std::string_view bytes) {
  BodyWatch watch(std::move(scan), response);
  switch (response.framing) {
    case Framing::none: return std::nullopt;
    case Framing::length:
      return watch.feed(bytes.substr(0, std::min<std::uint64_t>(response.length, bytes.size())));
    case Framing::until_close: return watch.feed(bytes);
    case Framing::chunked: break;
  }
  ChunkReader chunks(kTrailerLimit);
  std::optional<std::size_t> found;
  while (!found && chunks.next(bytes) == ChunkReader::Event::data)
    found = watch.feed(chunks.data());
  return found;
}

}  // namespace sluice
