// A chunked body (RFC 9112 §7.1), bytes in, data out. Written out here because Debian's llhttp
// refuses part of the grammar (quoted pairs, white space around an extension) and lets through what
// parsers disagree about. Extensions are checked and forgotten. Does no I/O; memory is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class ChunkReader {
 public:
  enum class Event : std::uint8_t { more, data, end, error };

  // `limit`: bytes of trailer section, and no size line is longer.
  explicit ChunkReader(std::size_t limit) : limit_(limit) {}

  void begin();
  // Trailer fields that stay here besides those that may never come in a trailer section: sorted,
  // as Nominated::copy() gives them.
  void withhold(std::vector<std::string> names) { withheld_ = std::move(names); }
  // Between messages: gives back what a large trailer section took.
  void shed();
  // Takes bytes off the front of `in`; after `end` what is left belongs to the next message.
  Event next(std::string_view& in);

  std::string_view data() const { return data_; }
  std::string_view why() const { return why_; }  // after `error`
  // Trailer fields that may be passed on, as complete lines; empty when there are none.
  const std::string& trailers() const { return trailers_; }

 private:
  enum class State : std::uint8_t {
    first_digit,
    size,
    after_size,  // white space that must lead to an extension
    ext_name,    // nothing of it yet
    ext_name_on,
    after_name,
    ext_value,  // nothing of it yet
    ext_token,
    quoted,
    quoted_pair,
    after_value,
    line_feed,  // after the CR of a size line
    data,
    data_cr,
    data_lf,
    trailer,
    trailer_lf,
  };

  bool read_size_line(unsigned char c);
  bool end_size_line(unsigned char c);
  bool is_worth_its_line();
  bool end_trailer_line();
  Event read_trailer(std::string_view& in);
  Event fail(std::string_view why);

  const std::size_t limit_;
  State state_ = State::first_digit;
  std::uint64_t left_ = 0;     // of the chunk
  std::size_t line_size_ = 0;  // of the size line so far
  std::uint64_t wasted_ = 0;   // by the size lines, see is_worth_its_line()
  std::size_t trailer_size_ = 0;
  std::string line_;  // of the trailer section, so far
  std::string trailers_;
  std::vector<std::string> withheld_;
  std::string_view data_, why_;
};

}  // namespace sluice
