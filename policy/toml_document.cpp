#include <algorithm>

#include "policy/toml_table.h"

namespace sluice {
namespace {

// A text with more errors than this is not the text somebody meant to write.
constexpr std::size_t kMostProblems = 100;

std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

std::string last_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

std::string in_section(const std::string& path) {
  return path.empty() ? std::string() : " in [" + path + "]";
}

std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace

TomlDocument::TomlDocument(TomlSource source) : source_(std::move(source)) {
  auto parsed = read_toml(source_.text, source_.file);
  if (auto* root = std::get_if<TomlNode>(&parsed)) {
    root_ = std::move(*root);
    is_toml_ = true;
  } else {
    const Diagnostic& wrong = std::get<Diagnostic>(parsed);
    report(wrong.line, wrong.column, wrong.message);
  }
}

TomlTable TomlDocument::root() { return {this, &root_, "", 1, 1}; }

Place TomlDocument::place(unsigned line, unsigned column) const {
  if (source_.shown.empty()) {
    return {source_.file, line, column, std::string(line_of(source_.text, line))};
  }
  const int shifted = std::max(1, static_cast<int>(column) + source_.shift);
  return {source_.file, 1, static_cast<unsigned>(shifted), source_.shown};
}

void TomlDocument::report(unsigned line, unsigned column, std::string message) {
  if (problems_.size() >= kMostProblems) return;
  problems_.push_back({place(line, column), printable(std::move(message))});
}

void TomlDocument::finish() {
  report_unknown(root_, "");
  std::stable_sort(problems_.begin(), problems_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
}

void TomlDocument::report_unknown(const TomlNode& node, const std::string& path) {
  for (const TomlEntry& entry : node.entries) {
    const std::string full = dotted(path, entry.key);
    if (!known_.contains(full)) {
      report(entry.line, entry.column,
             "unknown key '" + entry.key + "'" + in_section(path) + suggestion(entry.key, path));
      continue;
    }
    report_unknown(entry.value, full);
    for (const TomlNode& item : entry.value.items) report_unknown(item, full + "[]");
  }
}

// A key that is right elsewhere was put under the wrong heading; else the nearest of this table.
std::string TomlDocument::suggestion(const std::string& key, const std::string& path) const {
  std::vector<std::string> here;
  for (const std::string& known : known_) {
    if (parent_of(known) == path) here.push_back(last_of(known));
  }
  if (const std::string_view near = nearest_word(key, here); !near.empty()) {
    return "; did you mean '" + std::string(near) + "'?";
  }
  for (const std::string& known : known_) {
    if (last_of(known) != key || known.find("[]") != std::string::npos) continue;
    const std::string home = parent_of(known);
    return home.empty() ? "; it belongs above the first [section]"
                        : "; it belongs in [" + home + "]";
  }
  return "";
}

}  // namespace sluice
