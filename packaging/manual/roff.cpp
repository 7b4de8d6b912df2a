#include "roff.h"

#include <cstdint>
#include <cstdio>

namespace sluice::manual {
namespace {

// The length of the UTF-8 character that starts with this byte; 1 for what cannot start one.
std::size_t width(unsigned char first) {
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
}

std::string named_character(std::string_view bytes) {
  std::uint32_t code = static_cast<unsigned char>(bytes[0]) & (0xffu >> (bytes.size() + 1));
  for (char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  char text[16];
  std::snprintf(text, sizeof text, "\\[u%04X]", static_cast<unsigned>(code));
  return text;
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = width(static_cast<unsigned char>(text[at]));
    if (length > 1) {
      out += named_character(text.substr(at, length));
    } else {
      switch (const char c = text[at]) {
        case '\\': out += "\\e"; break;
        case '-': out += "\\-"; break;
        case '\'': out += "\\(aq"; break;
        case '`': out += "\\(ga"; break;
        case '^': out += "\\(ha"; break;
        case '~': out += "\\(ti"; break;
        default: out += c;
      }
    }
    at += length;
  }
  // A line that starts with "." or "'" is a request; the quote is spelled out already.
  if (out.starts_with('.')) out.insert(0, "\\&");
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + quoted(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + quoted(text) + "\\fR"; }

Page::Page(std::string_view name, std::string_view section, std::string_view says) {
  out_ += ".TH " + std::string(name) + " " + std::string(section) +
          " \"\" \"sluice " SLUICE_VERSION "\" \"Sluice\"\n";
  heading("Name");
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  out_ += quoted(lower) + " \\- " + quoted(says) + "\n";
}

void Page::heading(std::string_view text) { out_ += ".SH \"" + quoted(text) + "\"\n"; }
void Page::subheading(std::string_view text) { out_ += ".SS \"" + quoted(text) + "\"\n"; }
void Page::paragraph(std::string_view text) { paragraph_raw(quoted(text)); }
void Page::paragraph_raw(std::string_view roff) { out_ += ".PP\n" + std::string(roff) + "\n"; }
void Page::term(std::string_view roff) { out_ += ".TP\n" + std::string(roff) + "\n"; }
void Page::another_term(std::string_view roff) { out_ += ".TQ\n" + std::string(roff) + "\n"; }
void Page::text(std::string_view text) { out_ += quoted(text) + "\n"; }

void Page::verbatim(std::string_view lines) {
  out_ += ".PP\n.RS 4\n.EX\n";
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    out_ += quoted(lines.substr(0, end)) + "\n";
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
  out_ += ".EE\n.RE\n";
}

}  // namespace sluice::manual
