#include "proxy/body_watch.h"

namespace sluice {

BodyWatch::BodyWatch(MarkerScan scan, const Head& response) : scan_(std::move(scan)) {
  if (scan_.done()) return;
  const Field* coding = response.find(FieldName::content_encoding);
  if (coding == nullptr || equals_ignoring_case(trim(coding->value), "identity")) return;
  decoder_ = make_decoder(coding->value);
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

}  // namespace sluice
