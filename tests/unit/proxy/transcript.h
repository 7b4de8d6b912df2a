// What a Reader made of some bytes, as lines to compare: the tests of both sides read like
// transcripts. Every case is fed whole, byte by byte and with bytes of a next message behind it.
#pragma once

#include <string>
#include <string_view>

#include "proxy/http/reader.h"

namespace sluice::test {

struct Feeding {
  Reader::Kind kind = Reader::Kind::request;
  std::size_t head_limit = 65536;
  bool no_body = false;    // for responses: the request was HEAD
  bool then_ends = false;  // the connection ends after the last byte
};

// One line per event: the start line and each field as `Name: value`, `framing …`, `body …` (pieces
// put together), `trailer …`, `end`, `error STATUS why`. Bytes left over after an error are not
// shown.
std::string transcript(const Feeding& feeding, std::string_view bytes, std::size_t piece);

// Checks that all three ways of feeding give `expected`. `bytes` is one message, or one that fails.
void check_reading(const Feeding& feeding, std::string_view bytes, std::string_view expected);

// Checks that all three ways of feeding end in an error of that status; `why` may be empty: any.
void check_refused(const Feeding& feeding, std::string_view bytes, int status,
                   std::string_view why = {});

}  // namespace sluice::test
