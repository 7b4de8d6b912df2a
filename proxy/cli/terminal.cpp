#include "proxy/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace sluice {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::size_t kLeast = 8;  // what a shrinking column keeps
constexpr std::string_view kCut = "…";

bool is_inside(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// In characters: close enough to columns for names and English words.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_inside(c); }));
}

std::string cut(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string(text);
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if (!is_inside(text[end]) && seen++ == width - 1) break;
  }
  return std::string(text.substr(0, end)).append(kCut);
}

std::size_t sum(const std::vector<std::size_t>& widths) {
  std::size_t total = 0;
  for (const std::size_t width : widths) total += width + kGap.size();
  return total - (widths.empty() ? 0 : kGap.size());
}

// Takes from the widest of those that may shrink, then drops whole columns.
void fit(std::size_t bound, std::vector<Column>& columns, std::vector<std::size_t>& widths) {
  while (sum(widths) > bound) {
    std::size_t widest = columns.size();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!columns[i].may_shrink || widths[i] <= kLeast) continue;
      if (widest == columns.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest != columns.size()) {
      widths[widest] =
          std::max(kLeast, widths[widest] - std::min(widths[widest] - kLeast, sum(widths) - bound));
    } else if (columns.size() > 1) {
      columns.pop_back();
      widths.pop_back();
    } else {
      return;
    }
  }
}

std::size_t number_or(std::size_t otherwise, const std::string& text) {
  std::size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && number > 0 ? number : otherwise;
}

// The length of a whole UTF-8 character at the front; 0: there is none.
std::size_t character_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first < 0x80                    ? 1
                           : first >= 0xc2 && first < 0xe0 ? 2
                           : first >= 0xe0 && first < 0xf0 ? 3
                           : first >= 0xf0 && first < 0xf5 ? 4
                                                           : 0;
  if (size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if (!is_inside(text[i])) return 0;
  return size;
}

// C0, DEL, and C1, which some terminals obey too.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

Terminal Terminal::of_output(const Environment& environment) {
  Terminal terminal;
  terminal.is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (!terminal.is_terminal) return terminal;
  terminal.colours = environment.get("NO_COLOR").empty() && environment.get("TERM") != "dumb";
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  terminal.width = number_or(known ? size.ws_col : 80, environment.get("COLUMNS"));
  return terminal;
}

std::string Terminal::paint(std::string_view text, Colour colour) const {
  if (!colours || colour == Colour::none || text.empty()) return std::string(text);
  const char* code = colour == Colour::red      ? "\x1b[31m"
                     : colour == Colour::yellow ? "\x1b[33m"
                     : colour == Colour::green  ? "\x1b[32m"
                                                : "\x1b[2m";
  return code + std::string(text) + "\x1b[0m";
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
    if (size == 0 || is_control(character)) {
      out += '?';
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string render_table(const Terminal& terminal, std::vector<Column> columns,
                         const std::vector<std::vector<Cell>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = width_of(columns[i].title);
    for (const auto& row : rows) width = std::max(width, width_of(row[i].text));
    widths.push_back(width);
  }
  if (terminal.width > 0) fit(terminal.width, columns, widths);

  std::string out;
  const auto line = [&](const auto& cell_at) {
    std::string text;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Cell cell = cell_at(i);
      const std::string shown = cut(cell.text, widths[i]);
      const std::string padding(widths[i] - std::min(widths[i], width_of(shown)), ' ');
      if (i > 0) text += kGap;
      if (columns[i].number) text += padding;
      text += terminal.paint(shown, cell.colour);
      if (!columns[i].number && i + 1 < columns.size()) text += padding;
    }
    out.append(text, 0, text.find_last_not_of(' ') + 1).append("\n");
  };
  line([&](std::size_t i) { return Cell{columns[i].title, Colour::faint}; });
  for (const auto& row : rows) line([&](std::size_t i) { return row[i]; });
  return out;
}

}  // namespace sluice
