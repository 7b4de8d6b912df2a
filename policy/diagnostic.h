// A complaint about a text somebody wrote: where, what, and the line itself. Only values and their
// rendering: who prints them, and where to, is decided elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

struct Place {
  std::string file;     // or the argument or variable the text came from
  unsigned line = 1;    // from 1
  unsigned column = 1;  // from 1, in code points
  std::string excerpt;  // the line that is meant; may be empty
  bool operator==(const Place&) const = default;
};

struct Diagnostic : Place {
  std::string message;  // one sentence, without a full stop
  bool operator==(const Diagnostic&) const = default;
};

using Diagnostics = std::vector<Diagnostic>;

// `file:line:col: message`, the line, and a caret below the column; ends with a newline. Long lines
// are cut around the caret.
std::string render(const Diagnostic& diagnostic);

// Line `number` of `text`, counted from 1, without its end; empty when there is none.
std::string_view line_of(std::string_view text, unsigned number);

// The candidate a person most likely meant by `word`, or empty when none is near.
std::string_view nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace sluice
