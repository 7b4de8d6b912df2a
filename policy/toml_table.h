// Typed, checked reading of a TOML text. A getter leaves its target alone when the key is absent
// and collects a diagnostic when the value is wrong, so one pass reports every error of a file.
// What was never asked for is unknown: finish() reports it with a suggestion. Never throws, never
// prints.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/diagnostic.h"
#include "policy/time.h"
#include "policy/toml_reader.h"

namespace sluice {

class TomlTable;

// What is wrong with one item of a list, or empty.
using Complaint = std::function<std::string(std::string_view item)>;

struct TomlSource {
  std::string file;
  std::string text;
  // For a setting that came as an argument: what to show instead of `text`, and how far to the
  // right a column of `text` is there.
  std::string shown = {};
  int shift = 0;
  bool lone_items = false;  // a single value is as good as a list of one
};

class TomlDocument {
 public:
  explicit TomlDocument(TomlSource source);
  TomlDocument(const TomlDocument&) = delete;
  TomlDocument& operator=(const TomlDocument&) = delete;

  bool is_toml() const { return is_toml_; }  // if not, problems() says why and root() is empty
  TomlTable root();
  void finish();  // reports every key that nobody asked for; call once, last
  Diagnostics& problems() { return problems_; }
  // The dotted names of all keys that were asked for, whether present or not.
  const std::set<std::string>& known() const { return known_; }
  Place place(unsigned line, unsigned column) const;

 private:
  friend class TomlTable;
  void report(unsigned line, unsigned column, std::string message);
  void report_unknown(const TomlNode& node, const std::string& path);
  std::string suggestion(const std::string& key, const std::string& path) const;

  TomlSource source_;
  TomlNode root_;
  bool is_toml_ = false;
  std::set<std::string> known_;
  Diagnostics problems_;
};

// A view of one table of a document, present or not; valid as long as the document.
class TomlTable {
 public:
  bool has(std::string_view key) const;
  const std::string& path() const { return path_; }

  void read(std::string_view key, bool& out) const;
  void read(std::string_view key, std::string& out) const;
  void read(std::string_view key, double& out, double least, double most) const;
  void read(std::string_view key, Duration& out, Duration least = Duration(0)) const;
  template <class Count>
  void read_count(std::string_view key, Count& out, Count least, Count most) const;
  template <class Size>
  void read_size(std::string_view key, Size& out, Size least, Size most) const;
  template <class Choice>
  void read_choice(std::string_view key, Choice& out,
                   const std::vector<std::pair<std::string_view, Choice>>& choices) const;
  void read(std::string_view key, std::vector<std::string>& out, const Complaint& check) const;
  // Items may be whole numbers too, and arrive as their digits.
  void read_words(std::string_view key, std::vector<std::string>& out,
                  const Complaint& check) const;
  void read(std::string_view key, std::vector<Duration>& out, Duration least) const;
  void read_counts(std::string_view key, std::vector<std::uint16_t>& out, std::uint16_t least,
                   std::uint16_t most) const;
  void read(std::string_view key, std::map<std::string, std::string>& out) const;

  TomlTable table(std::string_view key) const;
  std::vector<TomlTable> tables(std::string_view key) const;  // a list of tables
  std::vector<std::pair<std::string, TomlTable>> named_tables(std::string_view key) const;

  // A complaint about a key: at its value, or at the table when it is absent.
  void complain(std::string_view key, std::string message) const;
  std::size_t problem_count() const { return document_->problems_.size(); }  // of the document
  std::vector<Place> item_places(std::string_view key) const;

 private:
  friend class TomlDocument;
  TomlTable(TomlDocument* document, const TomlNode* node, std::string path, unsigned line,
            unsigned column)
      : document_(document), node_(node), path_(std::move(path)), line_(line), column_(column) {}

  std::string name(std::string_view key) const;
  const TomlNode* find(std::string_view key) const;
  std::span<const TomlNode> list(std::string_view key, const char* of_what) const;
  void wrong_kind(std::string_view key, const TomlNode& node, const char* wanted) const;
  std::optional<std::int64_t> whole(std::string_view key, std::int64_t least,
                                    std::int64_t most) const;
  std::optional<std::uint64_t> size(std::string_view key, std::uint64_t least,
                                    std::uint64_t most) const;
  std::optional<std::size_t> choose(std::string_view key,
                                    const std::vector<std::string_view>& names) const;

  TomlDocument* document_;
  const TomlNode* node_;  // null: absent
  std::string path_;      // dotted; empty for the root
  unsigned line_, column_;
};

template <class Count>
void TomlTable::read_count(std::string_view key, Count& out, Count least, Count most) const {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto top = std::min<std::uint64_t>(most, kMost);
  if (const auto n = whole(key, static_cast<std::int64_t>(least), static_cast<std::int64_t>(top))) {
    out = static_cast<Count>(*n);
  }
}

template <class Size>
void TomlTable::read_size(std::string_view key, Size& out, Size least, Size most) const {
  if (const auto n = size(key, least, most)) out = static_cast<Size>(*n);
}

template <class Choice>
void TomlTable::read_choice(std::string_view key, Choice& out,
                            const std::vector<std::pair<std::string_view, Choice>>& choices) const {
  std::vector<std::string_view> names;
  for (const auto& choice : choices) names.push_back(choice.first);
  if (const auto chosen = choose(key, names)) out = choices[*chosen].second;
}

// "path.key"; a key that is not plain is quoted, so that no two keys share a name.
std::string dotted(const std::string& path, std::string_view key);

// "\"a\", \"b\" or \"c\""
std::string one_of(const std::vector<std::string_view>& names);

}  // namespace sluice
