#include "policy/toml_table.h"

#include <algorithm>
#include <cmath>

#include "policy/units.h"

namespace sluice {
namespace {

const char* kind_name(TomlNode::Kind kind) {
  switch (kind) {
    case TomlNode::Kind::boolean: return "true or false";
    case TomlNode::Kind::integer: return "a whole number";
    case TomlNode::Kind::real: return "a number";
    case TomlNode::Kind::string: return "a string";
    case TomlNode::Kind::date: return "a date or time";
    case TomlNode::Kind::array: return "a list";
    case TomlNode::Kind::table: return "a table";
  }
  return "something else";
}

std::string short_number(double value) {
  std::string out = std::to_string(value);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

std::string bounds(const std::string& least, const std::string& most, bool below) {
  return below ? " must be at least " + least : " must be at most " + most;
}

constexpr const char* kDurationKind = "a duration such as \"90s\"";

}  // namespace

std::string one_of(const std::vector<std::string_view>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += "\"" + std::string(names[i]) + "\"";
  }
  return out;
}

std::string dotted(const std::string& path, std::string_view key) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const bool plain = !key.empty() && key.find_first_not_of(kPlain) == std::string_view::npos;
  const std::string written = plain ? std::string(key) : "\"" + std::string(key) + "\"";
  return path.empty() ? written : path + "." + written;
}

std::string TomlTable::name(std::string_view key) const { return dotted(path_, key); }

const TomlNode* TomlTable::find(std::string_view key) const {
  document_->known_.insert(name(key));
  if (node_ == nullptr) return nullptr;
  const TomlEntry* entry = node_->find(key);
  return entry == nullptr ? nullptr : &entry->value;
}

bool TomlTable::has(std::string_view key) const { return find(key) != nullptr; }

void TomlTable::wrong_kind(std::string_view key, const TomlNode& node, const char* wanted) const {
  document_->report(node.line, node.column,
                    name(key) + " must be " + wanted + ", not " + kind_name(node.kind));
}

void TomlTable::read(std::string_view key, bool& out) const {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  if (node->kind != TomlNode::Kind::boolean) return wrong_kind(key, *node, "true or false");
  out = node->boolean;
}

void TomlTable::read(std::string_view key, std::string& out) const {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  if (node->kind != TomlNode::Kind::string) return wrong_kind(key, *node, "a string");
  // Names, paths and texts to search for: a zero byte would cut them short in a system call.
  if (node->string.find('\0') != std::string::npos) {
    return document_->report(node->line, node->column, name(key) + " must not hold a zero byte");
  }
  out = node->string;
}

void TomlTable::read(std::string_view key, double& out, double least, double most) const {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  const bool is_whole = node->kind == TomlNode::Kind::integer;
  if (!is_whole && node->kind != TomlNode::Kind::real) return wrong_kind(key, *node, "a number");
  const double value = is_whole ? static_cast<double>(node->integer) : node->real;
  if (std::isnan(value) || value < least || value > most) {
    return document_->report(
        node->line, node->column,
        name(key) + bounds(short_number(least), short_number(most), !(value > most)));
  }
  out = value;
}

void TomlTable::read(std::string_view key, Duration& out, Duration least) const {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  if (node->kind != TomlNode::Kind::string) return wrong_kind(key, *node, kDurationKind);
  const Result<Duration> parsed = parse_duration(node->string);
  if (!parsed) {
    return document_->report(node->line, node->column, name(key) + ": " + parsed.error());
  }
  if (*parsed < least) {
    return document_->report(node->line, node->column,
                             name(key) + " must be at least " + format_duration(least));
  }
  out = *parsed;
}

std::optional<std::int64_t> TomlTable::whole(std::string_view key, std::int64_t least,
                                             std::int64_t most) const {
  const TomlNode* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind != TomlNode::Kind::integer) {
    wrong_kind(key, *node, "a whole number");
    return std::nullopt;
  }
  if (node->integer < least || node->integer > most) {
    document_->report(
        node->line, node->column,
        name(key) + bounds(std::to_string(least), std::to_string(most), node->integer < least));
    return std::nullopt;
  }
  return node->integer;
}

std::optional<std::uint64_t> TomlTable::size(std::string_view key, std::uint64_t least,
                                             std::uint64_t most) const {
  const TomlNode* node = find(key);
  if (node == nullptr) return std::nullopt;
  const bool is_whole = node->kind == TomlNode::Kind::integer;
  if (!is_whole && node->kind != TomlNode::Kind::string) {
    wrong_kind(key, *node, "a size such as \"64KiB\"");
    return std::nullopt;
  }
  const Result<std::uint64_t> parsed =
      parse_size(is_whole ? std::to_string(node->integer) : node->string);
  if (!parsed) {
    document_->report(node->line, node->column, name(key) + ": " + parsed.error());
    return std::nullopt;
  }
  if (*parsed < least || *parsed > most) {
    document_->report(node->line, node->column,
                      name(key) +
                          bounds(std::to_string(least), std::to_string(most), *parsed < least) +
                          " bytes");
    return std::nullopt;
  }
  return *parsed;
}

std::optional<std::size_t> TomlTable::choose(std::string_view key,
                                             const std::vector<std::string_view>& names) const {
  const TomlNode* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind != TomlNode::Kind::string) {
    wrong_kind(key, *node, one_of(names).c_str());
    return std::nullopt;
  }
  const auto chosen = std::find(names.begin(), names.end(), node->string);
  if (chosen == names.end()) {
    document_->report(node->line, node->column,
                      name(key) + " must be " + one_of(names) + ", not \"" + node->string + "\"");
    return std::nullopt;
  }
  return static_cast<std::size_t>(chosen - names.begin());
}

std::span<const TomlNode> TomlTable::list(std::string_view key, const char* of_what) const {
  const TomlNode* node = find(key);
  if (node == nullptr) return {};
  if (node->kind == TomlNode::Kind::array) return node->items;
  if (document_->source_.lone_items) return {node, 1};
  wrong_kind(key, *node, of_what);
  return {};
}

void TomlTable::read(std::string_view key, std::vector<std::string>& out,
                     const Complaint& check) const {
  if (!has(key)) return;
  std::vector<std::string> items;
  for (const TomlNode& item : list(key, "a list of strings")) {
    if (item.kind != TomlNode::Kind::string) {
      document_->report(item.line, item.column,
                        name(key) + " must hold strings, not " + kind_name(item.kind));
    } else if (std::string wrong = check(item.string); !wrong.empty()) {
      document_->report(item.line, item.column, name(key) + ": " + wrong);
    } else {
      items.push_back(item.string);
    }
  }
  out = std::move(items);
}

void TomlTable::read_words(std::string_view key, std::vector<std::string>& out,
                           const Complaint& check) const {
  if (!has(key)) return;
  std::vector<std::string> items;
  for (const TomlNode& item : list(key, "a list")) {
    const bool is_whole = item.kind == TomlNode::Kind::integer;
    if (!is_whole && item.kind != TomlNode::Kind::string) {
      document_->report(
          item.line, item.column,
          name(key) + " must hold whole numbers and strings, not " + kind_name(item.kind));
      continue;
    }
    std::string word = is_whole ? std::to_string(item.integer) : item.string;
    if (std::string wrong = check(word); !wrong.empty()) {
      document_->report(item.line, item.column, name(key) + ": " + wrong);
    } else {
      items.push_back(std::move(word));
    }
  }
  out = std::move(items);
}

void TomlTable::read(std::string_view key, std::vector<Duration>& out, Duration least) const {
  if (!has(key)) return;
  std::vector<Duration> items;
  for (const TomlNode& item : list(key, "a list of durations")) {
    if (item.kind != TomlNode::Kind::string) {
      document_->report(
          item.line, item.column,
          name(key) + " must hold durations such as \"90s\", not " + kind_name(item.kind));
      continue;
    }
    const Result<Duration> parsed = parse_duration(item.string);
    if (!parsed) {
      document_->report(item.line, item.column, name(key) + ": " + parsed.error());
    } else if (*parsed < least) {
      document_->report(item.line, item.column,
                        name(key) + " must hold at least " + format_duration(least) + " each");
    } else {
      items.push_back(*parsed);
    }
  }
  out = std::move(items);
}

void TomlTable::read_counts(std::string_view key, std::vector<std::uint16_t>& out,
                            std::uint16_t least, std::uint16_t most) const {
  if (!has(key)) return;
  std::vector<std::uint16_t> items;
  for (const TomlNode& item : list(key, "a list of whole numbers")) {
    if (item.kind != TomlNode::Kind::integer) {
      document_->report(item.line, item.column,
                        name(key) + " must hold whole numbers, not " + kind_name(item.kind));
    } else if (item.integer < least || item.integer > most) {
      document_->report(item.line, item.column,
                        name(key) + " must hold numbers from " + std::to_string(least) + " to " +
                            std::to_string(most) + ", not " + std::to_string(item.integer));
    } else {
      items.push_back(static_cast<std::uint16_t>(item.integer));
    }
  }
  out = std::move(items);
}

void TomlTable::read(std::string_view key, std::map<std::string, std::string>& out) const {
  const TomlNode* node = find(key);
  if (node == nullptr) return;
  if (node->kind != TomlNode::Kind::table) return wrong_kind(key, *node, "a table");
  std::map<std::string, std::string> pairs;
  for (const TomlEntry& entry : node->entries) {
    const std::string full = dotted(name(key), entry.key);
    document_->known_.insert(full);
    if (entry.value.kind != TomlNode::Kind::string) {
      document_->report(entry.value.line, entry.value.column,
                        full + " must be a string, not " + kind_name(entry.value.kind));
      continue;
    }
    pairs[entry.key] = entry.value.string;
  }
  out = std::move(pairs);
}

TomlTable TomlTable::table(std::string_view key) const {
  const TomlNode* node = find(key);
  if (node == nullptr) return {document_, nullptr, name(key), line_, column_};
  if (node->kind != TomlNode::Kind::table) {
    wrong_kind(key, *node, "a table");
    return {document_, nullptr, name(key), node->line, node->column};
  }
  return {document_, node, name(key), node->line, node->column};
}

std::vector<TomlTable> TomlTable::tables(std::string_view key) const {
  std::vector<TomlTable> out;
  for (const TomlNode& item : list(key, "a list of tables")) {
    if (item.kind != TomlNode::Kind::table) {
      document_->report(item.line, item.column,
                        name(key) + " must hold tables, not " + kind_name(item.kind));
      continue;
    }
    out.push_back({document_, &item, name(key) + "[]", item.line, item.column});
  }
  return out;
}

std::vector<std::pair<std::string, TomlTable>> TomlTable::named_tables(std::string_view key) const {
  std::vector<std::pair<std::string, TomlTable>> out;
  const TomlTable parent = table(key);
  if (parent.node_ == nullptr) return out;
  for (const TomlEntry& entry : parent.node_->entries) {
    out.emplace_back(entry.key, parent.table(entry.key));
  }
  return out;
}

void TomlTable::complain(std::string_view key, std::string message) const {
  const TomlNode* node = find(key);
  document_->report(node != nullptr ? node->line : line_, node != nullptr ? node->column : column_,
                    std::move(message));
}

std::vector<Place> TomlTable::item_places(std::string_view key) const {
  std::vector<Place> out;
  const TomlNode* node = find(key);
  if (node == nullptr) return out;
  for (const TomlNode& item : node->items) out.push_back(document_->place(item.line, item.column));
  return out;
}

}  // namespace sluice
