#include "settings_page.h"

#include <sstream>
#include <utility>
#include <vector>

#include "roff.h"

namespace sluice::manual {
namespace {

// "#listen = …" is a setting that is commented out, "# Where …" is prose.
bool is_setting(const std::string& line) {
  return line.size() > 1 && line[0] == '#' && line[1] >= 'a' && line[1] <= 'z';
}

void write_setting(const std::string& line, Page& page, bool another) {
  const std::size_t equals = line.find(" = ");
  const std::string roff =
      bold(line.substr(1, equals - 1)) + " = " + quoted(line.substr(equals + 3));
  if (another) {
    page.another_term(roff);
  } else {
    page.term(roff);
  }
}

class SettingsWriter {
 public:
  explicit SettingsWriter(Page& page) : page_(page) {}

  void line(const std::string& line) {
    if (is_setting(line)) {
      // A setting without words of its own shares those of the one above it.
      if (!prose_.empty()) flush_settings();
      settings_.push_back(line);
      if (!prose_.empty()) words_ = std::exchange(prose_, {});
    } else if (line.starts_with("# ")) {
      prose_ += (prose_.empty() ? "" : " ") + line.substr(2);
    } else if (line.starts_with('[')) {
      // The words right above a section are about it.
      flush_settings();
      page_.subheading(line);
      flush_prose();
    } else {
      end();
    }
  }
  void end() {
    flush_settings();
    flush_prose();
  }

 private:
  void flush_settings() {
    for (std::size_t i = 0; i < settings_.size(); ++i) write_setting(settings_[i], page_, i > 0);
    if (!settings_.empty()) page_.text(words_);
    settings_.clear();
  }
  void flush_prose() {
    if (!prose_.empty()) page_.paragraph(prose_);
    prose_.clear();
  }

  Page& page_;
  std::string prose_;
  std::vector<std::string> settings_;
  std::string words_;  // about settings_
};

constexpr std::string_view kExample = R"(# policies/example.toml
hosts = ["api.example.com", "*.example.org"]
paths = ["/v1/*"]
scope = "credential"

[pace]
min_delay = "500ms"

[limits]
requests = [{ count = 5000, per = "1h" }]

[roles.search]
paths = ["/v1/search"]
pace.min_delay = "2s"
)";

void write_policies(Page& page) {
  page.heading("Policies");
  page.paragraph(
      "A policy is a file in the directory policies/ beside sluice.toml, named after what it is "
      "for and ending in .toml. It may say everything that [defaults] may, without that word: "
      "scope = \"policy\" at its top, [breaker], [pace] and so on. What it does not say is as in "
      "[defaults]. Besides, it has:");
  page.term(bold("hosts"));
  page.text(
      "Required: the hosts it is for, such as \"api.example.com\", \"*.example.org\" (every host "
      "below, but not that one itself), \"*\", each with or without \":port\". The most specific "
      "match wins.");
  page.term(bold("paths"));
  page.text("Only these paths, * for any run of characters; [\"/*\"] when not given.");
  page.term(bold("[roles.NAME]"));
  page.text("Other numbers for part of the host: its own paths, and any other key, dotted.");
  page.paragraph("For example:");
  page.verbatim(kExample);
}

}  // namespace

std::string settings_page(std::string_view conf) {
  Page page("SLUICE.TOML", "5", "configuration and policies of the Sluice proxy");
  page.heading("Description");
  SettingsWriter writer(page);
  std::istringstream in{std::string(conf)};
  bool settings = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('[') && !std::exchange(settings, true)) {
      writer.end();
      page.heading("Settings");
    }
    writer.line(line);
  }
  writer.end();
  write_policies(page);
  page.heading("See also");
  page.paragraph_raw(bold("sluice") + "(1)");
  return page.roff();
}

}  // namespace sluice::manual
