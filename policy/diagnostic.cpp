#include "policy/diagnostic.h"

#include <algorithm>
#include <array>

namespace sluice {
namespace {

constexpr std::size_t kShownColumns = 100;
constexpr std::size_t kLongestWord = 48;  // longer ones get no suggestion

bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The code points of `text` in [from, from + count), by their order.
std::string_view code_points(std::string_view text, std::size_t from, std::size_t count) {
  std::size_t seen = 0, begin = text.size(), end = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (continues_code_point(text[i])) continue;
    if (seen == from) begin = i;
    if (seen == from + count) {
      end = i;
      break;
    }
    ++seen;
  }
  return text.substr(begin, end - begin);
}

// What a terminal would act on is shown as a question mark; a tab keeps the caret in its place.
std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c == '\t') c = ' ';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, kLongestWord + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_above[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string render(const Diagnostic& d) {
  std::string out = d.file + ":" + std::to_string(d.line) + ":" + std::to_string(d.column) + ": " +
                    d.message + "\n";
  if (d.excerpt.empty()) return out;
  const std::size_t column = std::max(1u, d.column) - 1;
  const std::size_t from = column < kShownColumns ? 0 : column - kShownColumns / 2;
  const std::string_view shown = code_points(d.excerpt, from, kShownColumns);
  const bool cut = shown.data() + shown.size() < d.excerpt.data() + d.excerpt.size();
  out += std::string("  ") + (from > 0 ? "…" : "") + printable(shown) + (cut ? "…" : "") + "\n";
  out += "  " + std::string(column - from + (from > 0 ? 1 : 0), ' ') + "^\n";
  return out;
}

std::string_view line_of(std::string_view text, unsigned number) {
  for (unsigned line = 1; line < number; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

std::string_view nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kLongestWord) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace sluice
