// Any bytes from an origin give the same events however they are cut; what is passed on reads again
// as one message with the same body, and a cut is never a clean end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "proxy/http/gather.h"
#include "proxy/http/reader.h"
#include "proxy/http/rewrite.h"

namespace {

using namespace sluice;

void require(bool truth) {
  if (!truth) std::abort();
}

struct Message {
  std::string rebuilt, body, trailers;
  Framing framing = Framing::none;
  std::uint16_t status = 0;
  bool complete = false, failed = false, clean_end = false;
  std::size_t used = 0;
};

ResponsePlan plan_for(Framing framing) {
  ResponsePlan plan;
  plan.framing = framing == Framing::until_close ? Framing::chunked : framing;
  return plan;
}

Message read(std::string_view bytes, std::size_t piece, bool no_body,
             std::size_t head_limit = 4096) {
  Reader reader(Reader::Kind::response, head_limit);
  reader.expect_no_body(no_body);
  Message out;
  for (std::size_t at = 0; at < bytes.size() && !out.complete && !out.failed; at += piece) {
    const std::string chunk(bytes.substr(at, piece));
    for (std::string_view in = chunk;;) {
      const auto event = reader.next(in);
      if (event == Reader::Event::more) break;
      if (event == Reader::Event::head) {
        out.framing = reader.head().framing;
        out.status = reader.head().status;
        write_response(out.rebuilt, reader.head(), plan_for(out.framing), "me", "now");
      } else if (event == Reader::Event::body) {
        out.body += reader.data();
      } else {
        out.complete = event == Reader::Event::end;
        out.failed = !out.complete;
        out.used = at + chunk.size() - in.size();
        if (out.complete) out.trailers = reader.trailers();
        break;
      }
    }
  }
  if (!out.complete && !out.failed) out.clean_end = reader.finish() == Reader::Event::end;
  return out;
}

}  // namespace

// The first byte says whether the request was HEAD.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool no_body = (data[0] & 1) != 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Message whole = read(bytes, std::max<std::size_t>(bytes.size(), 1), no_body);
  const Message slow = read(bytes, 1, no_body);
  require(whole.failed == slow.failed && whole.complete == slow.complete &&
          whole.clean_end == slow.clean_end);
  require(whole.failed || (whole.body == slow.body && whole.rebuilt == slow.rebuilt &&
                           whole.used == slow.used && whole.trailers == slow.trailers));
  require(!whole.clean_end || whole.framing == Framing::until_close);
  if (!whole.complete && !whole.clean_end) return 0;

  const Framing framing = plan_for(whole.framing).framing;
  Gather gather;
  gather.text() += whole.rebuilt;
  gather.seal();
  if (!whole.body.empty()) gather.body(whole.body, framing);
  gather.end(whole.trailers, framing);
  std::string again;
  for (const iovec& piece : gather.pieces()) {
    again.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  }
  const Message client = read(again, again.size(), no_body, std::size_t{1} << 24);
  require(client.complete && client.used == again.size() && client.status == whole.status);
  require(client.body == whole.body && client.framing == framing);
  return 0;
}
