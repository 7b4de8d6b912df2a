#include "proxy/net/host_name.h"

#include <algorithm>

namespace sluice {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

// A last label that reads as a number makes the whole an IPv4 address to inet_aton and browsers.
bool looks_numeric(std::string_view label) {
  if (std::all_of(label.begin(), label.end(), is_digit)) return true;
  return label.starts_with("0x") && std::all_of(label.begin() + 2, label.end(), is_hex);
}

}  // namespace

std::optional<HostName> HostName::parse(std::string_view text) {
  HostName name;
  if (!text.empty() && text.back() == '.') {  // RFC 1034 §3.1: the root, so a complete name
    name.absolute_ = true;
    text.remove_suffix(1);
  }
  if (text.empty() || text.size() > name.text_.size()) return std::nullopt;
  std::size_t label = 0;  // where the current one starts
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c =
        text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
    if (c == '.') {
      if (i == label || i - label > 63) return std::nullopt;
      label = i + 1;
    } else if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_') {
      return std::nullopt;
    }
    name.text_[i] = c;
  }
  name.size_ = text.size();
  if (label == text.size() || text.size() - label > 63) return std::nullopt;
  if (looks_numeric(name.view().substr(label))) return std::nullopt;
  return name;
}

bool HostName::is_or_is_below(std::string_view parent) const {
  const std::string_view name = view();
  if (!name.ends_with(parent)) return false;
  return name.size() == parent.size() || name[name.size() - parent.size() - 1] == '.';
}

}  // namespace sluice
