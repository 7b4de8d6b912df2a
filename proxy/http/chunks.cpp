#include "proxy/http/chunks.h"

#include <algorithm>

#include "proxy/http/field.h"
#include "proxy/http/nominated.h"
#include "proxy/shed.h"

namespace sluice {
namespace {

constexpr std::size_t kSizeLineLimit = 4096;
// What the lines of all chunks may take beyond this for each, and beyond the data.
constexpr std::uint64_t kLineForFree = 16, kMostWasted = 16 * 1024;
constexpr std::uint64_t kLargestBeforeDigit = (std::uint64_t{1} << 58) - 1;

int hex_digit(unsigned char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const unsigned char low = c | 0x20;
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

bool is_blank(unsigned char c) { return c == ' ' || c == '\t'; }

}  // namespace

void ChunkReader::begin() {
  state_ = State::first_digit;
  left_ = 0;
  line_size_ = trailer_size_ = 0;
  wasted_ = 0;
  line_.clear();
  trailers_.clear();
  if (!withheld_.empty()) withheld_.clear();
}

void ChunkReader::shed() {
  shed_room(line_);
  shed_room(trailers_);
  withheld_ = {};
}

ChunkReader::Event ChunkReader::fail(std::string_view why) {
  why_ = why;
  return Event::error;
}

ChunkReader::Event ChunkReader::next(std::string_view& in) {
  while (!in.empty()) {
    const auto c = static_cast<unsigned char>(in.front());
    switch (state_) {
      case State::data:
        data_ = in.substr(0, left_);
        left_ -= data_.size();
        in.remove_prefix(data_.size());
        if (left_ == 0) state_ = State::data_cr;
        return Event::data;
      case State::data_cr:
        if (c != '\r') return fail("a chunk is longer than its size says");
        state_ = State::data_lf;
        break;
      case State::data_lf:
        if (c != '\n') return fail("a chunk does not end in CRLF");
        state_ = State::first_digit;
        line_size_ = 0;
        break;
      case State::trailer:
      case State::trailer_lf: return read_trailer(in);
      case State::line_feed:
        if (c != '\n') return fail("a line of the chunked body does not end in CRLF");
        if (!is_worth_its_line()) return fail("the chunk extensions are much longer than the data");
        state_ = left_ > 0 ? State::data : State::trailer;
        break;
      default:
        if (++line_size_ > std::min(kSizeLineLimit, limit_))
          return fail("a chunk extension is too long");
        if (!read_size_line(c)) return fail("a chunk size line is malformed");
        break;
    }
    in.remove_prefix(1);
  }
  return Event::more;
}

// chunk-size *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ), up to the CR.
bool ChunkReader::read_size_line(unsigned char c) {
  switch (state_) {
    case State::first_digit:
    case State::size: {
      const int digit = hex_digit(c);
      if (digit < 0) return state_ == State::size && end_size_line(c);
      if (state_ == State::first_digit) left_ = 0;
      if (left_ > kLargestBeforeDigit) return false;
      left_ = left_ * 16 + static_cast<unsigned>(digit);
      state_ = State::size;
      return true;
    }
    case State::after_size:
      if (is_blank(c)) return true;
      return c == ';' && end_size_line(c);
    case State::ext_name:
      if (is_blank(c)) return true;
      state_ = State::ext_name_on;
      return is_token_char(c);
    case State::ext_name_on:
    case State::after_name:
      if (is_token_char(c)) return state_ == State::ext_name_on;
      if (c == '=') {
        state_ = State::ext_value;
        return true;
      }
      if (is_blank(c)) {
        state_ = State::after_name;
        return true;
      }
      return (state_ == State::ext_name_on || c == ';') && end_size_line(c);
    case State::ext_value:
      if (is_blank(c)) return true;
      state_ = c == '"' ? State::quoted : State::ext_token;
      return c == '"' || is_token_char(c);
    case State::ext_token: return is_token_char(c) || end_size_line(c);
    case State::quoted:
      if (c == '"') {
        state_ = State::after_value;
        return true;
      }
      if (c == '\\') {
        state_ = State::quoted_pair;
        return true;
      }
      return c == '\t' || (c >= 0x20 && c != 0x7f);
    case State::quoted_pair: state_ = State::quoted; return c == '\t' || (c >= 0x20 && c != 0x7f);
    case State::after_value: return end_size_line(c);
    default: return false;
  }
}

// Extensions are thrown away (RFC 9112 §7.1.1), and so are not to be what a body mostly is. Pieces
// of a byte each are fine.
bool ChunkReader::is_worth_its_line() {
  const std::uint64_t for_free = kLineForFree + 2 * std::min(left_, kMostWasted);
  wasted_ = std::max(wasted_ + line_size_, for_free) - for_free;
  return wasted_ <= kMostWasted;
}

// What may come behind a complete size, name or value.
bool ChunkReader::end_size_line(unsigned char c) {
  if (is_blank(c)) {
    state_ = State::after_size;
  } else if (c == ';') {
    state_ = State::ext_name;
  } else if (c == '\r') {
    state_ = State::line_feed;
  } else {
    return false;
  }
  return true;
}

ChunkReader::Event ChunkReader::read_trailer(std::string_view& in) {
  while (!in.empty()) {
    if (state_ == State::trailer_lf) {
      if (in.front() != '\n') return fail("a line of the trailer section does not end in CRLF");
      in.remove_prefix(1);
      if (line_.empty()) return Event::end;
      if (!end_trailer_line()) return fail("a line of the trailer section is malformed");
      state_ = State::trailer;
      continue;
    }
    const auto end = std::min(in.find('\r'), in.size());
    trailer_size_ += end;
    if (trailer_size_ > limit_) return fail("the trailer section is larger than the limit");
    if (in.substr(0, end).find('\n') != std::string_view::npos) {
      return fail("a line of the trailer section does not end in CRLF");
    }
    line_ += in.substr(0, end);
    in.remove_prefix(end);
    if (!in.empty()) {
      in.remove_prefix(1);
      trailer_size_ += 2;
      state_ = State::trailer_lf;
    }
  }
  return Event::more;
}

bool ChunkReader::end_trailer_line() {
  const std::string_view line = line_;
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  const auto name = line.substr(0, colon);
  const auto value = trim(line.substr(colon + 1));
  if (!is_token(name) || !is_field_value(value)) return false;
  if (!is_forbidden_in_trailers(name) && !is_among(withheld_, name)) {
    trailers_.append(name).append(": ").append(value).append("\r\n");
  }
  line_.clear();
  return true;
}

}  // namespace sluice
