// What a command may do to its output: colours only on a terminal that wants them, lines no wider
// than it is, and nothing that an origin or an operator wrote can move the cursor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config_reader.h"

namespace sluice {

enum class Colour : std::uint8_t { none, red, yellow, green, faint };

struct Terminal {
  bool is_terminal = false;
  bool colours = false;
  std::size_t width = 0;  // 0: no bound

  // Standard output, with NO_COLOR, TERM and COLUMNS as people set them.
  static Terminal of_output(const Environment& environment);

  std::string paint(std::string_view text, Colour colour) const;
};

// With control characters and broken UTF-8 replaced.
std::string printable(std::string_view text);

struct Cell {
  std::string text;
  Colour colour = Colour::none;
};

struct Column {
  std::string title;
  bool number = false;      // to the right
  bool may_shrink = false;  // cut with "…" when the line would be too wide
};

// The titles and rows as lines. Where even that is too wide, columns are left out from the right.
std::string render_table(const Terminal& terminal, std::vector<Column> columns,
                         const std::vector<std::vector<Cell>>& rows);

}  // namespace sluice
