// Bytes in, events out: reads one side of an HTTP/1.x connection, message by message. llhttp parses
// heads, without lenient flags; this adds what a proxy must be stricter about, and counts bodies of
// known length itself so that the kernel can move them. Does no I/O and knows no peer.
#pragma once

#include <llhttp.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/chunks.h"
#include "proxy/http/head.h"

namespace sluice {

// Why a message was refused: the status for the client if it was a request, and one sentence.
struct Fault {
  std::uint16_t status = 400;
  std::string_view why;
};

class Reader {
 public:
  enum class Kind : std::uint8_t { request, response };
  enum class Event : std::uint8_t {
    more,   // all bytes used, the message goes on
    head,   // head() is complete; the body, if any, follows
    body,   // data() is the next piece of the body
    end,    // the message is complete; trailers() are final
    error,  // fault() says why; the connection is beyond use
  };

  Reader(Kind kind, std::size_t head_limit);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Takes bytes off the front of `in` and says what they were. Call again with the rest until
  // `more` or `error`. After `end` the next call begins the next message.
  Event next(std::string_view& in);

  // The connection ended. `end` closes an until-close body; `more` means nothing was cut off;
  // anything else was cut in the middle: `error`.
  Event finish();

  const Head& head() const { return head_; }
  std::string_view data() const { return data_; }
  const Fault& fault() const { return fault_; }
  // Trailer fields that may be passed on, as complete lines; empty when there are none.
  const std::string& trailers() const { return chunks_.trailers(); }

  // Before a response head: the request was HEAD (no body) or CONNECT (a 2xx has none).
  void expect_no_body(bool on) { no_body_ = on; }

  // Between messages: gives back what a large head took.
  void shed();
  bool between_messages() const { return state_ == State::start && partial_.empty(); }
  // Bytes of a body with known length that are still to come, and that someone else has moved.
  std::uint64_t remaining() const { return state_ == State::identity ? remaining_ : 0; }
  void moved(std::uint64_t count) { remaining_ -= count; }

 private:
  enum class State : std::uint8_t { start, head, identity, until_close, chunked, done, failed };
  struct Span {
    std::uint32_t at = 0, size = 0;
  };
  struct Line {
    Span name, value;
  };

  static const llhttp_settings_t kSettings;
  static Reader& self(llhttp_t* parser) { return *static_cast<Reader*>(parser->data); }

  Event fail(std::uint16_t status, std::string_view why);
  Event fail_with_llhttp();
  Event end_message();
  Event read_start(std::string_view& in);
  Event read_head(std::string_view& in);
  Event read_chunks(std::string_view& in);
  Event finish_head(std::string_view raw);
  bool decide_framing();
  bool check_lines(std::string_view raw) const;
  void begin_message();

  std::uint32_t offset(const char* at) const {
    return static_cast<std::uint32_t>(fed_ + static_cast<std::size_t>(at - base_));
  }
  int on_url(const char* at, std::size_t size);
  int on_status(const char* at, std::size_t size);
  int on_name(const char* at, std::size_t size);
  int on_value(const char* at, std::size_t size);

  llhttp_t parser_;
  const std::size_t head_limit_;
  const Kind kind_;
  State state_ = State::start;
  bool no_body_ = false;
  bool in_value_ = false;         // the last field callback was about a value
  bool folded_ = false;           // a value went on over a line end
  std::uint8_t blank_lines_ = 0;  // before a request line
  std::uint64_t remaining_ = 0;
  std::size_t fed_ = 0;         // bytes of this head that llhttp had before `base_`
  const char* base_ = nullptr;  // the bytes llhttp is reading now
  std::string partial_;         // a head that did not come in one piece
  ChunkReader chunks_;
  Span url_, phrase_;
  std::vector<Line> lines_;
  Head head_;
  std::string_view data_;
  Fault fault_;
};

}  // namespace sluice
