#include "proxy/http/reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "proxy/http/nominated.h"
#include "proxy/shed.h"

namespace sluice {
namespace {

constexpr std::size_t kMethodLimit = 64;
constexpr std::size_t kMostFields = 1000;
constexpr int kMostBlankLines = 8;
constexpr int kPause = HPE_PAUSED;
constexpr std::string_view kBlankLines = "there are too many empty lines before the request line";
constexpr std::string_view kManyFields = "the header section has too many fields";
constexpr std::string_view kNoName = "a line of the header section does not start with a name";
constexpr std::string_view kNoMethod = "the request line does not start with a method";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// RFC 9110 §8.6: digits and nothing else; 18 of them always fit in 64 bits.
bool parse_length(std::string_view text, std::uint64_t& length) {
  if (text.empty() || text.size() > 18) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

const llhttp_settings_t Reader::kSettings = [] {
  llhttp_settings_t settings;
  llhttp_settings_init(&settings);
  settings.on_url = [](llhttp_t* p, const char* at, size_t n) { return self(p).on_url(at, n); };
  settings.on_status = [](llhttp_t* p, const char* at, size_t n) {
    return self(p).on_status(at, n);
  };
  settings.on_header_field = [](llhttp_t* p, const char* at, size_t n) {
    return self(p).on_name(at, n);
  };
  settings.on_header_value = [](llhttp_t* p, const char* at, size_t n) {
    return self(p).on_value(at, n);
  };
  settings.on_headers_complete = [](llhttp_t*) { return kPause; };
  return settings;
}();

Reader::Reader(Kind kind, std::size_t head_limit)
    : head_limit_(head_limit), kind_(kind), chunks_(head_limit) {}

Reader::Event Reader::next(std::string_view& in) {
  switch (state_) {
    case State::start: return in.empty() ? Event::more : read_start(in);
    case State::head: return in.empty() ? Event::more : read_head(in);
    case State::chunked: return in.empty() ? Event::more : read_chunks(in);
    case State::identity: {
      if (remaining_ == 0) return end_message();
      if (in.empty()) return Event::more;
      data_ = in.substr(0, remaining_);
      remaining_ -= data_.size();
      in.remove_prefix(data_.size());
      return Event::body;
    }
    case State::until_close:
      if (in.empty()) return Event::more;
      data_ = std::exchange(in, {});
      return Event::body;
    case State::done: return end_message();
    case State::failed: return Event::error;
  }
  return Event::error;
}

Reader::Event Reader::finish() {
  if (state_ == State::until_close) return end_message();
  if (between_messages()) return Event::more;
  return fail(400, "the connection ended in the middle of a message");
}

void Reader::begin_message() {
  llhttp_init(&parser_, kind_ == Kind::request ? HTTP_REQUEST : HTTP_RESPONSE, &kSettings);
  parser_.data = this;
  state_ = State::head;
  in_value_ = folded_ = false;
  blank_lines_ = 0;
  url_ = phrase_ = {};
  head_.length = 0;
  lines_.clear();
  chunks_.begin();
}

Reader::Event Reader::end_message() {
  state_ = State::start;
  partial_.clear();
  return Event::end;
}

void Reader::shed() {
  shed_room(partial_);
  shed_room(lines_);
  shed_room(head_.fields);
  chunks_.shed();
}

// llhttp knows a fixed list of methods, but RFC 9110 §9.1 lets anyone define one: the method is
// read here, and llhttp is shown one that means the same to it.
Reader::Event Reader::read_start(std::string_view& in) {
  if (kind_ == Kind::response) {
    begin_message();
    fed_ = 0;
    return read_head(in);
  }
  if (partial_ == "\r") {
    if (in.front() != '\n') return fail(400, kNoMethod);
    partial_.clear();
    in.remove_prefix(1);
    if (++blank_lines_ > kMostBlankLines) return fail(400, kBlankLines);
  }
  // RFC 9112 §2.2: an empty line before the request line is ignored.
  if (partial_.empty()) {
    while (in.substr(0, 2) == "\r\n") {
      in.remove_prefix(2);
      if (++blank_lines_ > kMostBlankLines) return fail(400, kBlankLines);
    }
    if (in.empty()) return Event::more;
    if (in == "\r") {
      partial_ = std::exchange(in, {});
      return Event::more;
    }
  }
  const auto space = in.find(' ');
  const auto piece = in.substr(0, std::min(space, kMethodLimit + 1));
  const bool token = std::all_of(piece.begin(), piece.end(), is_token_char);
  const auto size = partial_.size() + piece.size();
  if (!token || size > kMethodLimit || (size == 0 && space == 0)) {
    return fail(400, kNoMethod);
  }
  if (space == std::string_view::npos) {
    partial_ += std::exchange(in, {});
    return Event::more;
  }
  begin_message();
  if (!partial_.empty()) partial_.append(in.data(), space + 1);
  in.remove_prefix(space + 1);
  fed_ = size + 1;
  const std::string_view method(partial_.empty() ? in.data() - fed_ : partial_.data(), size);
  const std::string_view stand_in = method == "CONNECT" ? "CONNECT " : "POST ";
  if (llhttp_execute(&parser_, stand_in.data(), stand_in.size()) != HPE_OK)
    return fail_with_llhttp();
  url_ = {static_cast<std::uint32_t>(fed_), 0};
  return read_head(in);
}

Reader::Event Reader::read_head(std::string_view& in) {
  base_ = in.data();
  const auto error = llhttp_execute(&parser_, in.data(), in.size());
  if (error == HPE_USER) return fail(431, kManyFields);
  if (error != HPE_OK && error != HPE_PAUSED) return fail_with_llhttp();

  const bool complete = error == HPE_PAUSED;
  const std::size_t used =
      complete ? static_cast<std::size_t>(llhttp_get_error_pos(&parser_) - in.data()) : in.size();
  const std::size_t total = fed_ + used;
  if (total > head_limit_) {
    return kind_ == Kind::request && (lines_.empty() || url_.at + url_.size > head_limit_)
               ? fail(414, "the request target is longer than the limit for a head")
               : fail(431, "the header section is larger than the limit");
  }
  std::string_view raw;
  if (partial_.empty() && complete) {
    raw = {in.data() - fed_, total};
  } else {
    if (partial_.empty()) {
      partial_.assign(in.data() - fed_, total);
    } else {
      partial_.append(in.data(), used);
    }
    raw = partial_;
  }
  in.remove_prefix(used);
  fed_ = total;
  return complete ? finish_head(raw) : Event::more;
}

Reader::Event Reader::finish_head(std::string_view raw) {
  if (folded_ || !check_lines(raw)) {
    return fail(400, "a line of the header section is folded or does not end in CRLF");
  }
  const auto view = [&](Span span) { return raw.substr(span.at, span.size); };
  if (parser_.http_major != 1 || parser_.http_minor > 1) {
    return fail(505, "the HTTP version is neither 1.0 nor 1.1");
  }
  head_.minor = parser_.http_minor;
  head_.fields.clear();
  for (const Line& line : lines_) {
    const auto name = view(line.name);
    // llhttp lets nothing but token characters into a name, but it takes an empty one.
    if (name.empty()) return fail(400, kNoName);
    head_.fields.push_back({name, trim(view(line.value)), field_name(name)});
  }
  if (kind_ == Kind::request) {
    head_.method = raw.substr(0, url_.at - 1);
    head_.target = view(url_);
  } else {
    head_.status = parser_.status_code;
    head_.phrase = view(phrase_);
    if (!is_field_value(head_.phrase)) {
      return fail(400, "the status line has a control character");
    }
    if (head_.status < 100) return fail(400, "the status code is less than 100");
  }
  // Not by llhttp's own word, which knows no tab behind an element. RFC 9112 §9.3: to a proxy,
  // keep-alive in an HTTP/1.0 request means nothing.
  const bool stays_by_word =
      kind_ == Kind::response && head_.lists(FieldName::connection, "keep-alive");
  head_.close = head_.lists(FieldName::connection, "close") || (head_.minor == 0 && !stays_by_word);
  if (!decide_framing()) return Event::error;

  switch (head_.framing) {
    case Framing::none: state_ = State::done; break;
    case Framing::length:
      state_ = State::identity;
      remaining_ = head_.length;
      break;
    case Framing::chunked:
      state_ = State::chunked;
      if (head_.find(FieldName::connection) != nullptr) chunks_.withhold(Nominated(head_).copy());
      break;
    case Framing::until_close: state_ = State::until_close; break;
  }
  return Event::head;
}

// Every field line must begin where the one before it ended: nothing folded, nothing slipped
// between, no line end but CRLF (RFC 9112 §2.2, §5.2).
bool Reader::check_lines(std::string_view raw) const {
  const auto after_blanks = [&](std::size_t from) {
    while (from < raw.size() && is_blank(raw[from])) ++from;
    return from;
  };
  std::size_t at = raw.find('\n') + 1;
  if (kind_ == Kind::response) {
    if (!raw.starts_with("HTTP/") || raw.substr(at - 2, 2) != "\r\n") return false;
  } else {
    at = url_.at + url_.size;
    if (raw.substr(at, 8) != " HTTP/1." || raw.substr(at + 9, 2) != "\r\n") {
      // Another version is a matter of its own; anything else is no request line.
      return raw.substr(at, 6) == " HTTP/" && parser_.http_major != 1;
    }
    at += 11;
  }
  for (const Line& line : lines_) {
    const std::size_t colon = line.name.at + line.name.size;
    if (line.name.at != at || raw[colon] != ':') return false;
    std::size_t end = after_blanks(colon + 1);
    if (line.value.size > 0) {
      if (line.value.at != end) return false;
      end = after_blanks(end + line.value.size);
    }
    if (raw.substr(end, 2) != "\r\n") return false;
    at = end + 2;
  }
  return raw.substr(at) == "\r\n";
}

// RFC 9112 §6.3, with every choice that two parsers could make differently refused.
bool Reader::decide_framing() {
  int lengths = 0, codings = 0;
  bool length_valid = true, chunked = false, chunked_last = false;
  for (const Field& field : head_.fields) {
    if (field.id == FieldName::content_length) {
      ++lengths;
      length_valid = length_valid && parse_length(field.value, head_.length);
    } else if (field.id == FieldName::transfer_encoding) {
      ++codings;
      chunked = equals_ignoring_case(field.value, "chunked");
      const auto last = field.value.rfind(',');  // none: all of it
      chunked_last = equals_ignoring_case(trim(field.value.substr(last + 1)), "chunked");
    }
  }
  const auto refuse = [&](std::uint16_t status, std::string_view why) {
    fail(status, why);
    return false;
  };
  if (lengths > 1 || !length_valid) return refuse(400, "Content-Length is not one whole number");
  if (codings > 0) {
    if (lengths > 0) return refuse(400, "there are both Content-Length and Transfer-Encoding");
    if (head_.minor == 0) return refuse(400, "HTTP/1.0 has no Transfer-Encoding");
    if (codings > 1 || !chunked) {
      return chunked_last ? refuse(501, "the only transfer coding understood is chunked")
                          : refuse(400, "Transfer-Encoding does not end in chunked");
    }
  }
  const bool bodiless = kind_ == Kind::response && (no_body_ || head_.status / 100 == 1 ||
                                                    head_.status == 204 || head_.status == 304);
  if (bodiless) {
    head_.framing = Framing::none;
  } else if (codings > 0) {
    head_.framing = Framing::chunked;
  } else if (lengths > 0) {
    head_.framing = Framing::length;
  } else {
    head_.framing = kind_ == Kind::request ? Framing::none : Framing::until_close;
  }
  return true;
}

Reader::Event Reader::read_chunks(std::string_view& in) {
  switch (chunks_.next(in)) {
    case ChunkReader::Event::more: return Event::more;
    case ChunkReader::Event::data: data_ = chunks_.data(); return Event::body;
    case ChunkReader::Event::end: return end_message();
    case ChunkReader::Event::error: return fail(400, chunks_.why());
  }
  return Event::error;
}

int Reader::on_url(const char* at, std::size_t size) {
  (void)at;
  url_.size += static_cast<std::uint32_t>(size);
  return 0;
}

int Reader::on_status(const char* at, std::size_t size) {
  if (phrase_.size == 0) phrase_.at = offset(at);
  phrase_.size += static_cast<std::uint32_t>(size);
  return 0;
}

int Reader::on_name(const char* at, std::size_t size) {
  if (in_value_ || lines_.empty()) {
    if (lines_.size() == kMostFields) return HPE_USER;
    lines_.push_back({{offset(at), 0}, {}});
    in_value_ = false;
  }
  lines_.back().name.size += static_cast<std::uint32_t>(size);
  return 0;
}

int Reader::on_value(const char* at, std::size_t size) {
  const bool first = !std::exchange(in_value_, true);
  Span& value = lines_.back().value;
  if (first || value.size == 0) value.at = offset(at);
  folded_ = folded_ || value.at + value.size != offset(at);
  value.size += static_cast<std::uint32_t>(size);
  return 0;
}

Reader::Event Reader::fail(std::uint16_t status, std::string_view why) {
  state_ = State::failed;
  fault_ = {status, why};
  return Event::error;
}

Reader::Event Reader::fail_with_llhttp() {
  // Numbers of another version; what is no version at all is a bad request like any other.
  const int version = parser_.http_major * 10 + parser_.http_minor;
  if (llhttp_get_errno(&parser_) == HPE_INVALID_VERSION && version != 0 && version != 10 &&
      version != 11) {
    return fail(505, "the HTTP version is neither 1.0 nor 1.1");
  }
  const char* why = llhttp_get_error_reason(&parser_);
  return fail(400, why != nullptr && *why != '\0' ? why : "the message is not HTTP/1.1");
}

}  // namespace sluice
