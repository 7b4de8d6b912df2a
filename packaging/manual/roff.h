// Text for man(7): quoting, paragraphs, headings. Writes ASCII; other characters as groff's
// \[uXXXX].
#pragma once

#include <string>
#include <string_view>

namespace sluice::manual {

// As it is, in running text: nothing in it means anything to groff.
std::string quoted(std::string_view text);

class Page {
 public:
  Page(std::string_view name, std::string_view section, std::string_view says);
  void heading(std::string_view text);     // .SH
  void subheading(std::string_view text);  // .SS
  void paragraph(std::string_view text);
  void paragraph_raw(std::string_view roff);
  void term(std::string_view roff);          // .TP and its tag; say what it is with text()
  void another_term(std::string_view roff);  // .TQ
  void text(std::string_view text);          // below the last of these
  void verbatim(std::string_view lines);     // as it is, line by line
  const std::string& roff() const { return out_; }

 private:
  std::string out_;
};

std::string bold(std::string_view text);
std::string italic(std::string_view text);

}  // namespace sluice::manual
