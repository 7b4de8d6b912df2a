// Whatever is accepted as a request, and rebuilt, reads as the same single message, however it
// came.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "proxy/http/reader.h"
#include "proxy/http/rewrite.h"

namespace {

using namespace sluice;

void require(bool truth) {
  if (!truth) std::abort();
}

struct Message {
  bool head = false, complete = false, failed = false;
  std::string method, target, host, body, trailers, rebuilt;
  Framing framing = Framing::none;
  std::size_t used = 0;
};

// Reads the first message of `bytes` in pieces of that size.
Message read(std::string_view bytes, std::size_t piece, std::size_t head_limit = 4096) {
  Reader reader(Reader::Kind::request, head_limit);
  Message out;
  for (std::size_t at = 0; at < bytes.size() && !out.complete && !out.failed; at += piece) {
    const std::string chunk(bytes.substr(at, piece));
    for (std::string_view in = chunk;;) {
      const auto event = reader.next(in);
      if (event == Reader::Event::more) break;
      if (event == Reader::Event::head) {
        const Head& head = reader.head();
        out.head = true;
        out.method = head.method;
        out.target = head.target;
        out.framing = head.framing;
        if (const auto target = parse_absolute_form(head.target);
            target && head.method != "CONNECT") {
          out.host = target->authority;
          write_request(out.rebuilt, head, *target, "me", wants_upgrade(head));
        }
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
  return out;
}

// The request as the origin gets it, with its body framed anew.
std::string on_the_wire(const Message& message) {
  std::string out = message.rebuilt;
  if (message.framing == Framing::length) out += message.body;
  if (message.framing == Framing::chunked) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", message.body.size());
    if (!message.body.empty()) out += size + message.body + "\r\n";
    out += "0\r\n" + message.trailers + "\r\n";
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Message whole = read(bytes, std::max<std::size_t>(size, 1));
  const Message slow = read(bytes, 1);
  require(whole.failed == slow.failed && whole.complete == slow.complete);
  if (whole.complete) {
    require(whole.used == slow.used && whole.body == slow.body && whole.rebuilt == slow.rebuilt &&
            whole.trailers == slow.trailers);
  }
  if (!whole.complete || whole.rebuilt.empty()) return 0;

  const std::string again = on_the_wire(whole);
  // An origin sees the same: one message, all of it, and nothing behind it.
  const Message origin = read(again, again.size(), std::size_t{1} << 24);
  require(origin.complete && origin.used == again.size());
  require(origin.method == whole.method && origin.framing == whole.framing &&
          origin.body == whole.body && origin.trailers == whole.trailers);
  require(whole.rebuilt.find("\r\nProxy-") == std::string::npos);
  require(whole.rebuilt.find("\r\nHost: " + whole.host + "\r\n") != std::string::npos);
  return 0;
}
