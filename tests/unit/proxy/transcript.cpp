#include "unit/proxy/transcript.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace sluice::test {
namespace {

const char* framing_word(Framing framing) {
  switch (framing) {
    case Framing::none: return "none";
    case Framing::length: return "length";
    case Framing::chunked: return "chunked";
    case Framing::until_close: return "until close";
  }
  return "?";
}

class Transcript {
 public:
  explicit Transcript(const Feeding& feeding)
      : kind_(feeding.kind), reader_(feeding.kind, feeding.head_limit) {
    reader_.expect_no_body(feeding.no_body);
  }

  // Gives what was not used: all of it stays when a message ended and `one_message` is asked for.
  std::string_view feed(std::string_view in, bool one_message) {
    while (!over_) {
      const auto event = reader_.next(in);
      note(event);
      if (event == Reader::Event::more) return in;
      if (event == Reader::Event::end && one_message) over_ = true;
    }
    return in;
  }
  void finish() {
    if (!over_) note(reader_.finish());
  }
  bool over() const { return over_; }
  const std::string& text() {
    flush();
    return text_;
  }

 private:
  void note(Reader::Event event) {
    switch (event) {
      case Reader::Event::more: break;
      case Reader::Event::head: note_head(); break;
      case Reader::Event::body: body_ += reader_.data(); break;
      case Reader::Event::end:
        flush();
        note_trailers();
        text_ += "end\n";
        break;
      case Reader::Event::error:
        flush();
        over_ = true;
        text_ += "error " + std::to_string(reader_.fault().status) + " " +
                 std::string(reader_.fault().why) + "\n";
        break;
    }
  }
  void note_head() {
    const Head& head = reader_.head();
    const std::string version = "HTTP/1." + std::to_string(head.minor);
    if (kind_ == Reader::Kind::request) {
      text_ += std::string(head.method) + " " + std::string(head.target) + " " + version + "\n";
    } else {
      text_ += version + " " + std::to_string(head.status) + " " + std::string(head.phrase) + "\n";
    }
    for (const Field& field : head.fields) {
      text_ += std::string(field.name) + ": " + std::string(field.value) + "\n";
    }
    text_ += std::string("framing ") + framing_word(head.framing);
    if (head.framing == Framing::length) text_ += " " + std::to_string(head.length);
    text_ += head.close ? ", then close\n" : "\n";
  }
  void note_trailers() {
    std::string_view rest = reader_.trailers();
    while (!rest.empty()) {
      const auto end = rest.find("\r\n");
      text_ += "trailer " + std::string(rest.substr(0, end)) + "\n";
      rest.remove_prefix(end + 2);
    }
  }
  void flush() {
    if (!body_.empty()) text_ += "body " + body_ + "\n";
    body_.clear();
  }

  const Reader::Kind kind_;
  Reader reader_;
  std::string text_, body_;
  bool over_ = false;
};

std::string feed_in_pieces(const Feeding& feeding, std::string_view bytes, std::size_t piece,
                           std::string_view trailing) {
  Transcript transcript(feeding);
  const std::string all = std::string(bytes) + std::string(trailing);
  std::size_t at = 0;
  while (at < all.size() && !transcript.over()) {
    const std::size_t size = std::min(piece, all.size() - at);
    // A buffer of its own for each piece: what is read after it is gone shows under ASan.
    const std::vector<char> buffer(all.begin() + static_cast<std::ptrdiff_t>(at),
                                   all.begin() + static_cast<std::ptrdiff_t>(at + size));
    const auto rest = transcript.feed({buffer.data(), size}, !trailing.empty());
    if (transcript.over() && transcript.text().ends_with("end\n")) {
      CHECK(all.size() - at - size + rest.size() == trailing.size());
    }
    at += size;
  }
  // The end of a message without a body needs no further byte, but one more call.
  if (!transcript.over()) transcript.feed({}, false);
  if (feeding.then_ends) transcript.finish();
  return transcript.text();
}

}  // namespace

std::string transcript(const Feeding& feeding, std::string_view bytes, std::size_t piece) {
  return feed_in_pieces(feeding, bytes, piece, {});
}

void check_reading(const Feeding& feeding, std::string_view bytes, std::string_view expected) {
  CAPTURE(bytes);
  const std::string whole = transcript(feeding, bytes, bytes.size());
  CHECK(whole == expected);
  if (whole != expected) return;  // once is enough
  CHECK(transcript(feeding, bytes, 1) == expected);
  CHECK(transcript(feeding, bytes, 7) == expected);
  if (feeding.then_ends) return;  // whatever followed would belong to it
  const std::string_view next =
      feeding.kind == Reader::Kind::request ? "GET http://next/" : "HTTP/1.1 404 ";
  CHECK(feed_in_pieces(feeding, bytes, bytes.size() + next.size(), next) == expected);
  CHECK(feed_in_pieces(feeding, bytes, 1, next) == expected);
}

void check_refused(const Feeding& feeding, std::string_view bytes, int status,
                   std::string_view why) {
  CAPTURE(bytes);
  for (const std::size_t piece : {bytes.size(), std::size_t{1}, std::size_t{7}}) {
    CAPTURE(piece);
    const std::string text = transcript(feeding, bytes, piece);
    const std::string last = text.substr(std::min(text.rfind("error "), text.size()));
    CHECK(last.substr(0, 10) == "error " + std::to_string(status) + " ");
    if (!why.empty())
      CHECK(last.substr(std::min<std::size_t>(last.size(), 10)) == std::string(why) + "\n");
  }
}

}  // namespace sluice::test
